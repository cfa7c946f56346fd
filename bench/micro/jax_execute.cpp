// Runs a program of the stand-in plugin again and again, as JAX does in training.
//
//   jax_execute PLUGIN EXECUTIONS ARGUMENTS kept|moving
//
// All arguments but the last one are parameters: "kept" where they are, as donated ones are, or at another address each time. The
// last one is a batch, which is new each time.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/micro/fake_pjrt.h"
#include "vramscope/jax.h"

namespace {

using Function = void* (*)(void*);
using Compiling = decltype(&vramscope_jax_compiling);

Function function_at(const unsigned char* table, std::size_t place) {
  Function function = nullptr;
  std::memcpy(&function, table + place, sizeof function);
  return function;
}

// What the Python side does.
void describe(std::size_t count) {
  auto* const compiling = reinterpret_cast<Compiling>(dlsym(RTLD_DEFAULT, "vramscope_jax_compiling"));
  if (compiling == nullptr) return;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back("params['dense_" + std::to_string(i) + "']['kernel']");
  constexpr std::uint8_t kParameter = 1, kInput = 5;
  std::vector<vramscope_jax_value> arguments;
  for (const std::string& text : texts) arguments.push_back({text.c_str(), "dense", kParameter});
  arguments.back().category = kInput;
  compiling(fake_pjrt::kProgram, 1, arguments.data(), arguments.size(), nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  void* const plugin = dlopen(argv[1], RTLD_NOW);
  if (plugin == nullptr) return 1;
  auto* const get = reinterpret_cast<const unsigned char* (*)()>(dlsym(plugin, "GetPjrtApi"));
  const unsigned char* const table = get();
  const auto executions = std::strtoull(argv[2], nullptr, 0);
  const std::size_t count = std::strtoull(argv[3], nullptr, 0);
  const bool moving = std::strcmp(argv[4], "moving") == 0;

  describe(count);
  void* compiled[7] = {};
  function_at(table, 200)(compiled);
  std::vector<fake_pjrt::Buffer> buffers(count);
  std::vector<const void*> arguments;
  for (std::size_t i = 0; i < count; ++i) {
    buffers[i] = {0x100000000 + (i << 20), 1 << 20};
    arguments.push_back(&buffers[i]);
  }
  const void* const* devices[] = {arguments.data()};
  const void* execute[10] = {nullptr,
                             nullptr,
                             compiled[6],
                             nullptr,
                             devices,
                             reinterpret_cast<const void*>(std::size_t{1}),
                             reinterpret_cast<const void*>(count)};
  const Function run = function_at(table, 480);
  for (unsigned long long i = 0; i < executions; ++i) {
    for (std::size_t a = moving ? 0 : count - 1; a < count; ++a) buffers[a].address ^= std::uint64_t{1} << 40;
    run(execute);
  }
  return 0;
}
