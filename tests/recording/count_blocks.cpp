// Counts the blocks of spool_producer.cpp in a trace of millions of events, for which a dump would take too long.
//
//   count_blocks TRACE     prints for each thread: its number, its blocks, and how many of them are not at their place
#include <cstdio>
#include <map>

#include "trace/reader.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto reader = vramscope::trace::Reader::open(argv[1]);
  if (!reader) {
    std::fprintf(stderr, "%s\n", reader.error().message.c_str());
    return 2;
  }
  struct Blocks {
    std::uint64_t count = 0, misplaced = 0;
  };
  std::map<std::uint64_t, Blocks> threads;
  for (std::size_t i = 0; i < reader->chunks(); ++i) {
    const auto chunk = reader->chunk(i);
    if (!chunk) return 2;
    for (const std::uint64_t address : chunk->tables.alloc.address) {
      Blocks& blocks = threads[(address >> 40) - 1];
      blocks.misplaced += (address >> 8 & 0xFFFFFFFF) != blocks.count ? 1 : 0;
      ++blocks.count;
    }
  }
  for (const auto& [thread, blocks] : threads)
    std::printf("%llu %llu %llu\n", static_cast<unsigned long long>(thread), static_cast<unsigned long long>(blocks.count),
                static_cast<unsigned long long>(blocks.misplaced));
  return reader->damage().truncated ? 3 : 0;
}
