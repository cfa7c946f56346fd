// Any bytes as a library whose functions are looked up: a recorded program may load one that somebody else wrote.
#include <cstdlib>
#include <span>

#include "memory_file.h"
#include "symbolize/module_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const vramscope::fuzz::MemoryFile file(std::span(data, size));
  auto symbols = vramscope::symbolize::ModuleSymbols::load(file.path(), {});
  if (!symbols) {
    if (symbols.error().message.empty()) std::abort();
    return 0;
  }
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x1000}, std::uint64_t{0x1010}, ~std::uint64_t{0}})
    if (symbols->find(address).line != 0 && symbols->find(address).file.empty()) std::abort();
  return 0;
}
