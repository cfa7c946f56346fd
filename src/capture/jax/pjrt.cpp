#include "capture/jax/pjrt.h"

#include <string.h>

#include <atomic>
#include <initializer_list>
#include <utility>

#include "capture/jax/activity.h"
#include "capture/jax/buffers.h"
#include "capture/jax/pjrt_table.h"
#include "capture/jax/plugins.h"
#include "capture/jax/programs.h"
#include "capture/jax/steps.h"
#include "record/state.h"

namespace vramscope::capture::jax::pjrt {

namespace {

// One copy of the table for each plugin. Two plugins in one process are normal.
constinit Table g_tables[kMostPlugins];
constexpr int kWrapped = 1, kTooLarge = 2;

// The program that was described under the name that XLA has for it.
Program program_of(const Table& table, const void* loaded) {
  Question executable, name, results, destroyed;
  if (!ask(table, Place::loaded_executable, loaded, kOneAnswer, executable)) return {};
  const auto* const about = reinterpret_cast<const void*>(executable.answer);
  Program program;
  if (ask(table, Place::executable_name, about, kTwoAnswers, name))
    program = programs::described_as(record::intern(reinterpret_cast<const char*>(name.answer), name.second_answer));
  if (ask(table, Place::executable_results, about, kOneAnswer, results)) program.result_count = results.answer;
  ask(table, Place::executable_destroy, about, kNoAnswer, destroyed);
  return program;
}

void note_executable(const Table& table, const void* executable) {
  if (executable == nullptr || record::recording() == nullptr) return;
  const Program program = program_of(table, executable);
  programs::remove(executable);  // an earlier one at this address was destroyed in a way that is not seen
  programs::add(executable, program);
}

// An argument that has not moved for this many runs is donated: it will stay. Until then, each run looks.
constexpr std::uint8_t kSettled = 3;

std::uint64_t address_of(const Table& table, const void* buffer) {
  Question place;
  return ask(table, Place::buffer_address, buffer, kOneAnswer, place) ? place.answer : 0;
}

// Batches are new each time, even at an address that was used before.
void tag(const Table& table, const void* buffer, Argument& argument, bool on_first_device) {
  buffers::label(table, buffer, argument);
  const std::uint64_t address = address_of(table, buffer);
  if (address == 0) return;
  if (on_first_device) {
    const bool stays = argument.address == address && argument.category != record::Category::input;
    argument.still = stays ? static_cast<std::uint8_t>(argument.still + 1) : std::uint8_t{0};
    argument.address = address;
    if (stays) return;
  }
  Question bytes;
  if (ask(table, Place::buffer_bytes, buffer, kOneAnswer, bytes))
    record::tag(address, bytes.answer, argument.category, argument.name, argument.layer);
}

// Reports where the arguments are if that has changed. Of those that are settled, the first stands for all: if it has moved, the
// training goes on with another state.
void tag_arguments(const Table& table, const Execute& execute, Program& program) {
  if (program.arguments == nullptr || program.argument_count != execute.argument_count) return;
  bool looked = false, state_is_new = false;
  for (std::size_t i = 0; i < program.argument_count; ++i) {
    Argument& argument = program.arguments[i];
    if (argument.category == record::Category::unknown) continue;
    if (argument.still >= kSettled && !table.tracks.load(std::memory_order_relaxed)) {
      if (!looked) state_is_new = address_of(table, execute.arguments[0][i]) != argument.address;
      looked = true;
      if (!state_is_new) continue;
    }
    for (std::size_t device = 0; device < execute.devices; ++device)
      tag(table, execute.arguments[device][i], argument, device == 0);
  }
}

Error* execute(const Table& table, Execute* arguments) {
  const Function real = function_at(table, Place::execute);
  Program* const program = record::recording() != nullptr ? programs::find(arguments->executable) : nullptr;
  if (program == nullptr) return real(arguments);
  static std::atomic<std::int64_t> runs;
  const Doing doing({program->name, region_called("execute"), runs.fetch_add(1, std::memory_order_relaxed) + 1});
  steps::program_runs(*program);
  tag_arguments(table, *arguments, *program);
  Error* const error = real(arguments);
  if (error == nullptr) {
    buffers::remove_donated(table, *arguments);
    buffers::add_results(table, *arguments, *program);
  }
  return error;
}

template <typename Arguments>
Error* compile(const Table& table, Place place, Arguments* arguments) {
  const Function real = function_at(table, place);
  if (record::recording() == nullptr) return real(arguments);
  Error* error = nullptr;
  {
    const Compiling compiling;
    const Doing doing({programs::last_described(), region_called("compile"), 0});
    error = real(arguments);
  }
  if (error == nullptr) note_executable(table, arguments->executable);
  return error;
}

// FromHost or Copy: a function that makes a buffer.
template <typename Arguments>
Error* transfer(const Table& table, Place place, Arguments* arguments) {
  const Function real = function_at(table, place);
  if (record::recording() == nullptr) return real(arguments);
  const Doing doing({record::intern("device_put"), region_called("transfer"), 0});
  Error* const error = real(arguments);
  if (error == nullptr) buffers::add(table, arguments->buffer);
  return error;
}

Error* give_up(const Table& table, Place place, Destroy* arguments) {
  buffers::remove(arguments->object);
  return function_at(table, place)(arguments);
}

Error* say_address(const Table& table, Question* question) {
  Error* const error = function_at(table, Place::buffer_address)(question);
  if (error == nullptr) buffers::note_memory(question->about, question->answer);
  return error;
}

template <std::size_t kPlugin>
struct Wrappers {
  static Table& table() { return g_tables[kPlugin]; }

  static Error* on_execute(void* arguments) { return execute(table(), static_cast<Execute*>(arguments)); }
  static Error* on_compile(void* arguments) { return compile(table(), Place::compile, static_cast<Compile*>(arguments)); }
  static Error* on_load(void* arguments) { return compile(table(), Place::load, static_cast<Compile*>(arguments)); }
  static Error* on_deserialize(void* arguments) {
    return compile(table(), Place::deserialize, static_cast<Deserialize*>(arguments));
  }
  static Error* on_destroy(void* arguments) {
    programs::remove(static_cast<Destroy*>(arguments)->object);
    return function_at(table(), Place::loaded_destroy)(arguments);
  }
  static Error* on_transfer(void* arguments) {
    return transfer(table(), Place::buffer_from_host, static_cast<FromHost*>(arguments));
  }
  static Error* on_address(void* arguments) { return say_address(table(), static_cast<Question*>(arguments)); }
  template <Place kPlace>
  static Error* on_copy(void* arguments) {
    return transfer(table(), kPlace, static_cast<Copy*>(arguments));
  }
  template <Place kPlace>
  static Error* on_gone(void* arguments) {
    return give_up(table(), kPlace, static_cast<Destroy*>(arguments));
  }

  static void replace(std::initializer_list<std::pair<Place, Function>> ours) {
    for (const auto& [place, function] : ours)
      if (function_at(table(), place) != nullptr)
        memcpy(table().copy + static_cast<std::size_t>(place), &function, sizeof function);
  }

  static int make(const unsigned char* real) {
    if (real == nullptr || size_of(real) > Table::kMostBytes) return kTooLarge;
    table().real = real;
    memcpy(table().copy, real, size_of(real));
    replace({{Place::execute, on_execute},
             {Place::compile, on_compile},
             {Place::load, on_load},
             {Place::deserialize, on_deserialize},
             {Place::buffer_from_host, on_transfer},
             {Place::loaded_destroy, on_destroy}});
    if (table().tracks.load(std::memory_order_relaxed))
      replace({{Place::buffer_address, on_address},
               {Place::buffer_destroy, on_gone<Place::buffer_destroy>},
               {Place::buffer_delete, on_gone<Place::buffer_delete>},
               {Place::buffer_to_device, on_copy<Place::buffer_to_device>},
               {Place::buffer_to_memory, on_copy<Place::buffer_to_memory>},
               {Place::transferred_buffer, on_copy<Place::transferred_buffer>}});
    return kWrapped;
  }

  static const void* entry() {
    using GetApi = const unsigned char* (*)();
    const unsigned char* const real = reinterpret_cast<GetApi>(table().entry.load())();
    const int state = table().made([&] { return make(real); });
    return state == kWrapped ? table().copy : real;
  }
};

template <std::size_t... kPlugins>
void* entry_of(std::size_t plugin, std::index_sequence<kPlugins...>) {
  void* found = nullptr;
  ((plugin == kPlugins ? void(found = reinterpret_cast<void*>(&Wrappers<kPlugins>::entry)) : void()), ...);
  return found;
}

}  // namespace

void* wrapped_entry(void* entry, bool allocator_is_recorded) {
  for (std::size_t plugin = 0; plugin < kMostPlugins; ++plugin) {
    void* there = nullptr;
    if (!g_tables[plugin].entry.compare_exchange_strong(there, entry) && there != entry) continue;
    g_tables[plugin].tracks.store(!allocator_is_recorded, std::memory_order_relaxed);
    return entry_of(plugin, std::make_index_sequence<kMostPlugins>());
  }
  return entry;
}

}  // namespace vramscope::capture::jax::pjrt
