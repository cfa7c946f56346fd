// The functions of Python's stable interface that are used here, by their names in 3.9 to 3.14. Looked up on demand, because
// most processes have no interpreter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::capture::python {

struct Object;  // PyObject

struct Api {
  int (*is_initialized)();
  void* (*interpreter)();  // of this thread
  void* (*main_interpreter)();
  int (*add_pending_call)(int (*call)(void*), void* argument);
  Object* (*module_def_init)(void* definition);
  Object* (*run_string)(const char* code, int start, Object* globals, Object* locals, void* flags);
  Object* (*builtins)();

  Object* (*dict_new)();
  int (*dict_set)(Object* dict, const char* key, Object* value);
  Object* (*text)(const char* bytes);
  const char* (*utf8)(Object* text, std::intptr_t* bytes);
  std::uint64_t (*number)(Object* number);  // wraps around; with an error if it is no number
  Object* (*tuple_pack)(std::intptr_t count, ...);
  Object* (*concatenate)(Object* one, Object* other);

  Object* (*call)(Object* callable, Object* args, Object* kwargs);
  Object* (*repr)(Object* object);
  Object* (*get_attribute)(Object* object, Object* name);
  int (*set_attribute)(Object* object, Object* name, Object* value);
  Object* (*method_new)(Object* function, Object* self);
  Object* (*function_new)(void* definition, Object* self, Object* module);
  Object* (*type_from_spec)(void* spec);
  Object* (*generic_alloc)(Object* type, std::intptr_t items);
  void (*keep)(Object*);
  void (*release)(Object*);

  Object* (*error)();
  int (*error_is)(Object* type);
  void (*clear_error)();
  void (*print_error)(int set_last);
  void (*fetch_error)(Object** type, Object** value, Object** traceback);
  void (*restore_error)(Object* type, Object* value, Object* traceback);

  Object *none, *yes, *no;
  Object** exception;  // PyExc_Exception: set when the interpreter starts
};

// nullptr: no interpreter in this process, or one without these functions, or one with a different object layout
// (free-threaded).
const Api* api();

}  // namespace vramscope::capture::python
