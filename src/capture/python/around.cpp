// A callable that replaces a function of a framework and calls ours before and after it: `vramscope_around`.
//
// Written in C, because a Python function would have a frame: in every traceback, in the locations of warnings, in the stacks
// that TensorFlow keeps for its error messages; and its variables would keep the arguments alive. Everything except calling is
// delegated to the function itself: name, signature, code, documentation, class and text are its own.
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "capture/python/api.h"

#define VS_EXPORT extern "C" __attribute__((visibility("default")))

namespace vramscope::capture::python {

namespace {

struct Around {
  std::intptr_t references;  // PyObject
  Object* type;
  Object* original;
  Object* before;  // (*args, **kwargs) -> token; or nullptr
  Object* after;   // (token, ok, result, *args, **kwargs); or nullptr
  Object* weak_references;
};

// PyType_Spec, PyType_Slot and PyMemberDef, as in the stable interface.
struct Slot {
  int what;
  void* value;
};
struct Spec {
  const char* name;
  int bytes;
  int item_bytes;
  unsigned flags;
  Slot* slots;
};
struct Member {
  const char* name;
  int type;
  std::intptr_t offset;
  int flags;
  const char* doc;
};
enum SlotKind { kCall = 50, kBind = 54, kGetAttribute = 58, kRepr = 66, kSetAttribute = 69, kMembers = 72 };
constexpr unsigned kDefaultFlags = 1u << 18;  // Py_TPFLAGS_DEFAULT
constexpr int kSizeMember = 19, kReadOnly = 1;

// What the Python side adds to its wrappers, and the original does not have.
constexpr const char* kOriginal = "__vramscope_original__";
constexpr const char* kNoAutograph = "autograph_info__";

// An error in our additions is dropped; an interrupt or an exit belongs to the program. True: it was dropped.
bool forgive(const Api& python) {
  if (python.error_is(*python.exception) == 0) return false;
  if (getenv("VRAMSCOPE_DEBUG") != nullptr)
    python.print_error(0);
  else
    python.clear_error();
  return true;
}

// False: an interrupt is pending.
bool call_after(const Api& python, Object* after, Object* token, Object* result, Object* args, Object* kwargs) {
  Object* const head =
      python.tuple_pack(3, token, result != nullptr ? python.yes : python.no, result != nullptr ? result : python.none);
  Object* const all = head != nullptr ? python.concatenate(head, args) : nullptr;
  Object* const answer = all != nullptr ? python.call(after, all, kwargs) : nullptr;
  for (Object* object : {head, all, answer})
    if (object != nullptr) python.release(object);
  return answer != nullptr || forgive(python);
}

Object* call(Object* object, Object* args, Object* kwargs) {
  const Api& python = *api();
  const Around& self = *reinterpret_cast<Around*>(object);
  Object* token = nullptr;
  if (self.before != nullptr && (token = python.call(self.before, args, kwargs)) == nullptr && !forgive(python)) return nullptr;
  Object* result = python.call(self.original, args, kwargs);
  if (self.after != nullptr) {
    Object *type = nullptr, *value = nullptr, *traceback = nullptr;
    if (result == nullptr) python.fetch_error(&type, &value, &traceback);
    if (call_after(python, self.after, token != nullptr ? token : python.none, result, args, kwargs)) {
      if (result == nullptr) python.restore_error(type, value, traceback);
    } else {
      for (Object* dropped : {result, type, value, traceback})
        if (dropped != nullptr) python.release(dropped);
      result = nullptr;
    }
  }
  if (token != nullptr) python.release(token);
  return result;
}

Object* bind(Object* self, Object* object, Object*) {
  const Api& python = *api();
  if (object != nullptr) return python.method_new(self, object);
  python.keep(self);
  return self;
}

Object* get_attribute(Object* object, Object* name) {
  const Api& python = *api();
  const Around& self = *reinterpret_cast<Around*>(object);
  const char* const text = python.utf8(name, nullptr);
  if (text == nullptr) return nullptr;
  if (strcmp(text, kOriginal) == 0) {
    python.keep(self.original);
    return self.original;
  }
  if (strcmp(text, kNoAutograph) == 0) return python.dict_new();
  return python.get_attribute(self.original, name);
}

int set_attribute(Object* object, Object* name, Object* value) {
  return api()->set_attribute(reinterpret_cast<Around*>(object)->original, name, value);
}

Object* repr(Object* object) { return api()->repr(reinterpret_cast<Around*>(object)->original); }

Member g_members[] = {{"__weaklistoffset__", kSizeMember, offsetof(Around, weak_references), kReadOnly, nullptr}, {}};
Slot g_slots[] = {{kCall, reinterpret_cast<void*>(&call)},
                  {kBind, reinterpret_cast<void*>(&bind)},
                  {kGetAttribute, reinterpret_cast<void*>(&get_attribute)},
                  {kRepr, reinterpret_cast<void*>(&repr)},
                  {kSetAttribute, reinterpret_cast<void*>(&set_attribute)},
                  {kMembers, g_members},
                  {0, nullptr}};
// type() cannot be answered by the original; programs print it and error messages contain it.
Spec g_spec = {"builtins.function", sizeof(Around), 0, kDefaultFlags, g_slots};
Object* g_type;  // made under the interpreter's lock

// A name without a module would be a warning. Python shows the given one unless it is set again, and then "function".
Object* make_type(const Api& python) {
  Object* const type = python.type_from_spec(&g_spec);
  Object* const attribute = python.text("__name__");
  Object* const name = python.text("function");
  const bool named =
      type != nullptr && attribute != nullptr && name != nullptr && python.set_attribute(type, attribute, name) == 0;
  if (type != nullptr && !named) python.clear_error();
  for (Object* object : {attribute, name})
    if (object != nullptr) python.release(object);
  return type;
}

}  // namespace

}  // namespace vramscope::capture::python

using namespace vramscope::capture::python;

// With the interpreter's lock. `before` and `after` may be None. A new reference, or NULL with an exception set.
VS_EXPORT void* vramscope_around(void* original, void* before, void* after) {
  const Api* const python = api();
  if (python == nullptr) return nullptr;
  if (g_type == nullptr) g_type = make_type(*python);
  auto* made = g_type != nullptr ? reinterpret_cast<Around*>(python->generic_alloc(g_type, 0)) : nullptr;
  if (made == nullptr) return nullptr;
  const auto kept = [&](void* given) {
    auto* const object = static_cast<Object*>(given);
    if (object == python->none) return static_cast<Object*>(nullptr);
    python->keep(object);
    return object;
  };
  made->original = kept(original);
  made->before = kept(before);
  made->after = kept(after);
  return made;
}
