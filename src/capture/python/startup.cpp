#include "capture/python/startup.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "capture/elf_symbols.h"
#include "capture/python/api.h"
#include "record/options.h"
#include "record/text.h"
#include "spool/layout.h"

namespace vramscope::capture::python {

namespace {

constexpr const char* kModule = "sitecustomize";
constexpr int kFileInput = 257;  // Py_file_input
constexpr std::size_t kMostModules = 512;

// PyModuleDef and what it is made of, as in the stable interface.
struct Slot {
  int what;
  void* value;
};
struct Definition {
  std::intptr_t references;
  void* type;
  void* init;
  std::intptr_t index;
  void* copy;
  const char* name;
  const char* doc;
  std::intptr_t size;
  void* methods;
  Slot* slots;
  void* traverse;
  void* clear;
  void* free;
};
constexpr int kExecute = 2;              // Py_mod_exec
constexpr int kSeveralInterpreters = 3;  // Py_mod_multiple_interpreters
constexpr unsigned long kSeveralInterpretersSince = 0x030c0000;

struct Builtin {  // struct _inittab
  const char* name;
  Object* (*init)();
};

char g_folder[3072];               // of the Python side's start-up files; empty: not wanted
Builtin g_builtins[kMostModules];  // what the interpreter reads instead of its own table
std::atomic<bool> g_called_for;
std::atomic<unsigned> g_seen, g_watched;  // frameworks, one bit each

// Both run a file, in names of their own. The second is not in the start-up folder: a program could import all that is there.
constexpr const char* kAtStart =
    "from importlib.machinery import SourceFileLoader\n"
    "file = folder + '/sitecustomize.py'\n"
    "exec(SourceFileLoader('sitecustomize', file).get_code('sitecustomize'),\n"
    "     {'__name__': 'sitecustomize', '__file__': file, 'is_main_interpreter': is_main_interpreter})\n";
constexpr const char* kLate =
    "from importlib.machinery import SourceFileLoader\n"
    "file = folder + '/../_hooks/late.py'\n"
    "exec(SourceFileLoader('vramscope_late', file).get_code('vramscope_late'), {'__name__': 'vramscope_late', '__file__': "
    "file})\n";

// With the interpreter's lock. False: an exception is set.
bool run(const Api& python, const char* code) {
  Object* const names = python.dict_new();
  Object* const folder = python.text(g_folder);
  Object* const is_main = python.interpreter() == python.main_interpreter() ? python.yes : python.no;
  Object* result = nullptr;
  if (names != nullptr && folder != nullptr && python.dict_set(names, "__builtins__", python.builtins()) == 0 &&
      python.dict_set(names, "folder", folder) == 0 && python.dict_set(names, "is_main_interpreter", is_main) == 0)
    result = python.run_string(code, kFileInput, names, names, nullptr);
  for (Object* object : {names, folder, result})
    if (object != nullptr) python.release(object);
  return result != nullptr;
}

int execute(Object*) {
  const Api* const python = api();
  return python != nullptr && run(*python, kAtStart) ? 0 : -1;
}

int call_late(void*) {
  const Api* const python = api();
  if (python != nullptr && !run(*python, kLate)) python->clear_error();
  return 0;
}

// A sub-interpreter with a lock of its own accepts only modules that say they can live there: 2 is
// Py_MOD_PER_INTERPRETER_GIL_SUPPORTED. Older versions reject a slot that they do not know.
Slot g_slots[] = {{kExecute, reinterpret_cast<void*>(&execute)}, {0, nullptr}, {0, nullptr}};
void fill_slots() {
  const auto* const version = static_cast<const unsigned long*>(symbol_in_any("Py_Version"));
  if (version != nullptr && *version >= kSeveralInterpretersSince)
    g_slots[1] = {kSeveralInterpreters, reinterpret_cast<void*>(std::uintptr_t{2})};
}
Definition g_definition = {1, nullptr, nullptr, 0, nullptr, kModule, nullptr, 0, nullptr, g_slots, nullptr, nullptr, nullptr};

Object* make_module() {
  const Api* const python = api();
  return python != nullptr ? python->module_def_init(&g_definition) : nullptr;
}

unsigned bit(const Framework& framework) { return 1u << static_cast<unsigned>(framework.id); }

void record_python_side(const Framework& framework, bool watched) {
  record::Text<64> key;
  key.add("python_side.").add(framework.word);
  record::setting(key.c_str(), watched ? "on" : "absent");
}

}  // namespace

void prepare() {
  const char* const folder = getenv(spool::kEnvStartup);
  if (record::g_options.spool_folder[0] == '\0' || folder == nullptr || *folder == '\0') return;
  record::Text<sizeof g_folder> file;
  file.add(folder).add("/sitecustomize.py");
  if (strlen(folder) + 20 >= sizeof g_folder || access(file.c_str(), R_OK) != 0) return;
  memcpy(g_folder, folder, strlen(folder) + 1);
  auto** const table = static_cast<Builtin**>(symbol_in_any("PyImport_Inittab"));
  if (table == nullptr || *table == nullptr || api() == nullptr || api()->is_initialized() != 0) return;
  std::size_t count = 0;
  for (; (*table)[count].name != nullptr; ++count)
    if (count + 2 >= kMostModules || strcmp((*table)[count].name, kModule) == 0) return;
  fill_slots();
  memcpy(g_builtins, *table, count * sizeof(Builtin));
  g_builtins[count] = {kModule, &make_module};
  g_builtins[count + 1] = {nullptr, nullptr};
  *table = g_builtins;
}

void framework_seen(const Framework& framework) {
  g_seen.fetch_or(bit(framework));
  const bool watched = (g_watched.load() & bit(framework)) != 0;
  record_python_side(framework, watched);
  if (watched || g_folder[0] == '\0' || g_called_for.exchange(true)) return;
  const Api* const python = api();
  if (python != nullptr && python->is_initialized() != 0) python->add_pending_call(&call_late, nullptr);
}

void framework_watched(const Framework& framework) {
  g_watched.fetch_or(bit(framework));
  if ((g_seen.load() & bit(framework)) != 0) record_python_side(framework, true);
}

}  // namespace vramscope::capture::python
