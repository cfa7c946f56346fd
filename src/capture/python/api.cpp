#include "capture/python/api.h"

#include <string.h>

#include <atomic>

#include "capture/elf_symbols.h"

namespace vramscope::capture::python {

namespace {

Api g_api;
std::atomic<bool> g_bound;

template <typename Pointer>
bool bind(const char* name, Pointer& pointer) {
  void* const found = symbol_in_any(name);
  memcpy(&pointer, &found, sizeof pointer);
  return found != nullptr;
}

}  // namespace

const Api* api() {
  if (__builtin_expect(g_bound.load(std::memory_order_acquire), 1)) return &g_api;
  Api found{};
  if (!bind("Py_IsInitialized", found.is_initialized)) return nullptr;
  const bool all[] = {bind("PyInterpreterState_Get", found.interpreter),
                      bind("PyInterpreterState_Main", found.main_interpreter),
                      bind("Py_AddPendingCall", found.add_pending_call),
                      bind("PyModuleDef_Init", found.module_def_init),
                      bind("PyRun_StringFlags", found.run_string),
                      bind("PyEval_GetBuiltins", found.builtins),
                      bind("PyDict_New", found.dict_new),
                      bind("PyDict_SetItemString", found.dict_set),
                      bind("PyUnicode_DecodeFSDefault", found.text),
                      bind("PyUnicode_AsUTF8AndSize", found.utf8),
                      bind("PyLong_AsUnsignedLongLongMask", found.number),
                      bind("PyTuple_Pack", found.tuple_pack),
                      bind("PySequence_Concat", found.concatenate),
                      bind("PyObject_Call", found.call),
                      bind("PyObject_Repr", found.repr),
                      bind("PyObject_GetAttr", found.get_attribute),
                      bind("PyObject_SetAttr", found.set_attribute),
                      bind("PyMethod_New", found.method_new),
                      bind("PyCFunction_NewEx", found.function_new),
                      bind("PyType_FromSpec", found.type_from_spec),
                      bind("PyType_GenericAlloc", found.generic_alloc),
                      bind("Py_IncRef", found.keep),
                      bind("Py_DecRef", found.release),
                      bind("PyErr_Occurred", found.error),
                      bind("PyErr_ExceptionMatches", found.error_is),
                      bind("PyErr_Clear", found.clear_error),
                      bind("PyErr_PrintEx", found.print_error),
                      bind("PyErr_Fetch", found.fetch_error),
                      bind("PyErr_Restore", found.restore_error),
                      bind("_Py_NoneStruct", found.none),
                      bind("_Py_TrueStruct", found.yes),
                      bind("_Py_FalseStruct", found.no),
                      bind("PyExc_Exception", found.exception)};
  for (const bool one : all)
    if (!one) return nullptr;
  if (symbol_in_any("_Py_MergeZeroLocalRefcount") != nullptr) return nullptr;  // a build without the lock
  g_api = found;                                                               // by several threads: the same values
  g_bound.store(true, std::memory_order_release);
  return &g_api;
}

}  // namespace vramscope::capture::python
