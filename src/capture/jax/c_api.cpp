#include "vramscope/jax.h"

#include "capture/jax/programs.h"

using namespace vramscope;
using capture::jax::Argument;
using capture::jax::Program;
namespace programs = capture::jax::programs;

#define VS_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Ids of the texts, in room that is kept. NULL if there is none, or nothing to be kept.
Argument* read_values(const vramscope_jax_value* values, size_t count) {
  constexpr size_t kMostValues = 4096;
  static Argument read[kMostValues];  // the caller holds the interpreter's lock
  if (values == nullptr || count > kMostValues) return nullptr;
  for (size_t i = 0; i < count; ++i)
    read[i] = {record::intern(values[i].path), record::intern(values[i].layer), static_cast<record::Category>(values[i].category),
               0, 0};
  return programs::keep_arguments(read, count);
}

}  // namespace

VS_EXPORT void vramscope_jax_compiling(const char* name, int trains, const vramscope_jax_value* arguments, size_t argument_count,
                                       const vramscope_jax_value* results, size_t result_count) {
  if (!record::active()) return;
  Program program;
  program.name = record::intern(name);
  program.trains = trains != 0;
  program.arguments = read_values(arguments, argument_count);
  program.argument_count = program.arguments != nullptr ? argument_count : 0;
  program.results = read_values(results, result_count);
  program.labelled_count = program.results != nullptr ? result_count : 0;
  programs::describe(program);
}
