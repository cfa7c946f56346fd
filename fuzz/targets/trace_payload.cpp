// Any payloads inside correct frames: no input gets past the checksums by chance, so they are made right here.
//   input := (type u8, flags u8, events u16, allocs u16, first_alloc u16, length u16, payload)*
#include "memory_file.h"
#include "read_all.h"
#include "trace/block.h"
#include "trace/gen/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramscope;
  support::ByteReader in({data, size});
  support::Buffer file;
  trace::put_header(file, {trace::kMajor, trace::kMinor, 1});
  while (in.left() > 0) {
    trace::BlockHead head;
    head.type = in.fixed<std::uint8_t>();
    head.flags = in.fixed<std::uint8_t>();
    head.events = in.fixed<std::uint16_t>();
    head.allocs = in.fixed<std::uint16_t>();
    head.first_alloc = in.fixed<std::uint16_t>();
    const std::size_t length = in.fixed<std::uint16_t>();
    trace::put_block(file, head, in.bytes(std::min(length, in.left())), 1);
  }
  const fuzz::MemoryFile memory(file);
  fuzz::read_all(memory.path());
  return 0;
}
