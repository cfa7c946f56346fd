#include "capture/tensorflow/annotation.h"

#include <string.h>
#include <atomic>

#include "base/hash.h"
#include "capture/loader.h"
#include "capture/tensorflow/shape.h"
#include "record/intern.h"
#include "record/recorder.h"
#include "record/state.h"

namespace vramscope::capture::tensorflow {

namespace {

// The layout of the thread's annotation: C strings up to TensorFlow 2.19, string views (length, then pointer) from 2.20 on. The
// order of the fields is the same in all versions.
struct WithPointers {
  const char* op;
  std::int64_t step;
  const char* region;
  std::int32_t dtype;
  ShapeFunction shape;
};
struct WithViews {
  std::size_t op_size;
  const char* op;
  std::int64_t step;
  std::size_t region_size;
  const char* region;
  std::int32_t dtype;
  ShapeFunction shape;
};
static_assert(sizeof(WithPointers) == 64 && sizeof(WithViews) == 80);

enum class Layout : int { unknown, pointers, views, off };
std::atomic<Layout> g_layout;

constexpr std::size_t kLongestName = 16384;
// Tells an address from a length: no process has data below this, and no length is above it.
constexpr std::uintptr_t kLowestAddress = 65536;

bool printable(const char* text, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (static_cast<unsigned char>(text[i]) < 0x20) return false;
  return true;
}

bool looks_like_text(const char* text, std::size_t bytes) {
  char copy[64];
  const std::size_t part = bytes < sizeof copy ? bytes : sizeof copy;
  return read_safely(text, copy, part) && printable(copy, part);
}

// Decided by the first annotation that names an op: its first word is either a small length or an address. The rest is read
// through the kernel, so that an unknown layout cannot crash the program. The first word can be read directly, because the
// annotation is TensorFlow's own object.
Layout detect(const void* annotation) {
  std::size_t first_word = 0;
  memcpy(&first_word, annotation, sizeof first_word);
  if (first_word == 0) return Layout::unknown;
  WithViews fields{};
  if (!read_safely(annotation, &fields, sizeof fields)) return Layout::off;
  if (fields.op_size < kLowestAddress) return looks_like_text(fields.op, fields.op_size) ? Layout::views : Layout::off;
  const auto* name = reinterpret_cast<const char*>(fields.op_size);
  return looks_like_text(name, 1) ? Layout::pointers : Layout::off;
}

Layout learn(const void* annotation) {
  const Layout found = detect(annotation);
  Layout expected = Layout::unknown;
  if (found == Layout::unknown) return found;
  g_layout.compare_exchange_strong(expected, found, std::memory_order_relaxed);
  if (found == Layout::off)
    record::say_once("this TensorFlow describes its allocations in an unknown way",
                     "sizes are recorded without op names; please report the TensorFlow version");
  return found;
}

void turn_off() { g_layout.store(Layout::off, std::memory_order_relaxed); }

std::uint8_t small_dtype(std::int32_t dtype) {
  return dtype > 0 && dtype < 256 ? static_cast<std::uint8_t>(dtype) : std::uint8_t{0};
}

// There are few region types, and all are short ("output", "temp"): the text is compared with the thread's last one before it is
// looked up.
std::uint16_t region_id(const char* text, std::size_t bytes) {
  if (text == nullptr || bytes == 0) return 0;
  if (bytes > 16) return 0;
  const bool large = bytes > 8;
  const std::uint64_t letters[2] = {large ? base::load64(text) : base::load_tail(text, bytes),
                                    large ? base::load_tail(text + 8, bytes - 8) : 0};
  record::RememberedText& last = record::t_state.region;
  if (last.letters[0] == letters[0] && last.letters[1] == letters[1] && last.bytes == bytes)
    return static_cast<std::uint16_t>(last.id);
  const std::uint32_t id = record::intern(text, bytes);
  if (id > 0xffff) return 0;
  last = {{letters[0], letters[1]}, static_cast<std::uint32_t>(bytes), id};
  return static_cast<std::uint16_t>(id);
}

// Looks up op and shape together if the bytes of the shape can be read.
void name_op_and_shape(const Library& library, const char* op, std::size_t op_bytes, const ShapeFunction& function,
                       Annotation& result) {
  RawShape raw;
  if (!raw_shape(library, function, raw) || is_zero(raw)) {
    result.op = record::intern(op, op_bytes);
    result.shape = shape_id(library, function);
    return;
  }
  // The two hashes are independent, so the processor computes them in parallel.
  const std::uint64_t both =
      base::mix(base::hash(op, op_bytes), base::hash(reinterpret_cast<const char*>(raw.bytes), sizeof raw.bytes));
  const std::uint64_t key = both != 0 ? both : 1;
  const record::Pair known = record::find_pair(key);
  result.op = known.first;
  result.shape = known.second;
  if (__builtin_expect(known.second != 0, 1)) return;
  result.op = record::intern(op, op_bytes);
  result.shape = shape_id(raw);
  if (result.shape != 0 && (result.op != 0 || op_bytes == 0)) record::add_pair(key, {result.op, result.shape});
}

}  // namespace

Annotation read_annotation(const Library& library) {
  Annotation result;
  Layout layout = g_layout.load(std::memory_order_relaxed);
  if (layout == Layout::off || library.annotation == nullptr) return result;
  const void* annotation = library.annotation();
  if (annotation == nullptr) return result;
  if (layout == Layout::unknown) layout = learn(annotation);
  if (layout == Layout::views) {
    const auto& fields = *static_cast<const WithViews*>(annotation);
    if (fields.op_size > kLongestName || fields.region_size > kLongestName) {
      turn_off();
      return result;
    }
    name_op_and_shape(library, fields.op, fields.op_size, fields.shape, result);
    result.region = region_id(fields.region, fields.region_size);
    result.dtype = small_dtype(fields.dtype);
    result.step = fields.step;
  } else if (layout == Layout::pointers) {
    const auto& fields = *static_cast<const WithPointers*>(annotation);
    name_op_and_shape(library, fields.op, fields.op != nullptr ? strlen(fields.op) : 0, fields.shape, result);
    result.region = region_id(fields.region, fields.region != nullptr ? strlen(fields.region) : 0);
    result.dtype = small_dtype(fields.dtype);
    result.step = fields.step;
  }
  return result;
}

}  // namespace vramscope::capture::tensorflow
