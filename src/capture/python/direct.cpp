// The calls that the hooks of the Python side make thousands of times, as functions of the interpreter: `vramscope_direct`.
// ctypes takes a microsecond and more to convert the arguments of one call; these take a tenth of that.
#include <cstdint>

#include "base/gen/enums.h"
#include "capture/python/api.h"
#include "vramscope/recorder.h"

#define VS_EXPORT extern "C" __attribute__((visibility("default")))

namespace vramscope::capture::python {

namespace {

// PyMethodDef, as in the stable interface.
struct Method {
  const char* name;
  Object* (*function)(Object* self, Object* const* args, std::intptr_t count);
  int flags;
  const char* doc;
};
constexpr int kFastCall = 0x80;  // METH_FASTCALL

// Reads the arguments of one call, from left to right.
class Arguments {
 public:
  Arguments(Object* const* args, std::intptr_t count) : python_(*api()), next_(args), end_(args + count) {}

  const char* text() {
    Object* const object = take();
    if (object == nullptr || object == python_.none) return nullptr;
    return python_.utf8(object, nullptr);
  }
  std::uint64_t number() {
    Object* const object = take();
    return object != nullptr ? python_.number(object) : 0;
  }
  // True if they were as many and of the right types. Otherwise nothing may be done with them.
  bool good() const { return !missing_ && next_ == end_ && python_.error() == nullptr; }

  // The answer to the caller: whether the call was made.
  Object* answer(bool made) const {
    if (!made) python_.clear_error();
    Object* const said = made ? python_.yes : python_.no;
    python_.keep(said);
    return said;
  }

 private:
  Object* take() {
    missing_ = missing_ || next_ == end_;
    return missing_ ? nullptr : *next_++;
  }

  const Api& python_;
  Object* const* next_;
  Object* const* end_;
  bool missing_ = false;
};

// (kind, edge, name, number, detail)
Object* mark(Object*, Object* const* args, std::intptr_t count) {
  Arguments given(args, count);
  const int kind = static_cast<int>(given.number()), edge = static_cast<int>(given.number());
  const char* const name = given.text();
  const auto number = static_cast<std::int64_t>(given.number());
  const char* const detail = given.text();
  const bool good = given.good() && name != nullptr;
  if (good) vramscope_mark(kind, edge, name, number, detail);
  return given.answer(good);
}

// (op, file, line, function, layer)
Object* op_source(Object*, Object* const* args, std::intptr_t count) {
  Arguments given(args, count);
  const char *const op = given.text(), *const file = given.text();
  const int line = static_cast<int>(given.number());
  const char *const function = given.text(), *const layer = given.text();
  const bool good = given.good() && op != nullptr && file != nullptr;
  if (good) vramscope_op_source(op, file, line, function, layer);
  return given.answer(good);
}

// (kind, its texts, its numbers)
Object* report(Object*, Object* const* args, std::intptr_t count) {
  Arguments given(args, count);
  const int kind = static_cast<int>(given.number());
  const base::ReportShape shape = base::report_shape(static_cast<std::uint32_t>(kind));
  const char* texts[base::kReportTexts] = {};
  std::uint64_t numbers[base::kReportNumbers] = {};
  for (int i = 0; i < shape.texts; ++i) texts[i] = given.text();
  for (int i = 0; i < shape.numbers; ++i) numbers[i] = given.number();
  const bool good = given.good() && shape.reported();
  if (good) vramscope_report(kind, texts, shape.texts, numbers, shape.numbers);
  return given.answer(good);
}

Method g_methods[] = {
    {"mark", &mark, kFastCall, nullptr}, {"op_source", &op_source, kFastCall, nullptr}, {"report", &report, kFastCall, nullptr}};

}  // namespace

}  // namespace vramscope::capture::python

using namespace vramscope::capture::python;

// With the interpreter's lock. A new reference, or NULL with an exception set.
VS_EXPORT void* vramscope_direct(void) {
  const Api* const python = api();
  if (python == nullptr) return nullptr;
  Object* functions[3] = {};
  bool made = true;
  for (int i = 0; i < 3; ++i) {
    functions[i] = python->function_new(&g_methods[i], nullptr, nullptr);
    made = made && functions[i] != nullptr;
  }
  Object* const all = made ? python->tuple_pack(3, functions[0], functions[1], functions[2]) : nullptr;
  for (Object* function : functions)
    if (function != nullptr) python->release(function);
  return all;
}
