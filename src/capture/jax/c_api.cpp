#include "vramscope/jax.h"

#include "capture/jax/programs.h"

using namespace vramscope;
using capture::jax::Argument;
using capture::jax::Program;
namespace programs = capture::jax::programs;

#define VS_EXPORT extern "C" __attribute__((visibility("default")))

VS_EXPORT void vramscope_jax_compiling(const char* name, int trains, const char* const* arguments, const char* const* layers,
                                       const uint8_t* categories, size_t count) {
  constexpr size_t kMostArguments = 4096;
  static Argument read[kMostArguments];  // the caller holds the interpreter's lock
  if (!record::active()) return;
  Program program;
  program.name = record::intern(name);
  program.trains = trains != 0;
  if (arguments != nullptr && layers != nullptr && categories != nullptr && count <= kMostArguments) {
    for (size_t i = 0; i < count; ++i)
      read[i] = {record::intern(arguments[i]), record::intern(layers[i]), static_cast<record::Category>(categories[i]), 0, 0};
    program.arguments = programs::keep_arguments(read, count);
    program.argument_count = program.arguments != nullptr ? count : 0;
  }
  programs::describe(program);
}
