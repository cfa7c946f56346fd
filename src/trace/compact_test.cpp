// Joining small chunks changes nothing but the size of the file.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "trace/compact.h"
#include "trace/reader.h"
#include "trace/test_file.h"
#include "trace/writer.h"

namespace vramscope::trace {
namespace {

class Compaction : public TestFile {
 protected:
  // Steps of a training run whose blocks live into later chunks, with a new name now and then.
  void fill(Writer& writer, int chunks) {
    std::mt19937 numbers(3);
    const PoolId pool = writer.pool({writer.string("GPU_0_bfc"), 0, Level::tensor, Memory::device, Framework::tensorflow});
    const ThreadId thread = writer.thread({1, {}});
    std::uint64_t seq = 0;
    std::vector<std::uint64_t> held;
    for (int i = 0; i < chunks; ++i) {
      writer.append({++seq, seq, thread}, Mark{MarkKind::step, MarkEdge::begin, writer.string("train"), i, {}});
      for (unsigned j = 0; j < 60; ++j) {
        const SiteId site = writer.site({.pool = pool,
                                         .requested = 256u * (j + 1u),
                                         .op = writer.string("op" + std::to_string(static_cast<int>(j) + i / 10))});
        const std::uint64_t address = 0x7f0000000000u + 65536u * (seq % 977);
        writer.alloc({++seq, seq, thread}, {site, address, 256u * (j + 1u), i});
        held.push_back(address);
        if (held.size() > 90) {
          const std::size_t which = numbers() % held.size();
          writer.free({++seq, seq, thread}, pool, held[which], 0);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        }
      }
      ASSERT_TRUE(writer.flush());
    }
  }

  std::vector<std::string> events() {
    const Reader reader = open();
    EXPECT_EQ(reader.damage().message, "");
    std::vector<std::string> out;
    for (std::size_t i = 0; i < reader.chunks(); ++i) {
      const auto chunk = reader.chunk(i);
      EXPECT_TRUE(chunk);
      std::size_t allocs = 0;
      std::size_t frees = 0;
      for (std::size_t event = 0; event < chunk->kind.size(); ++event) {
        std::string text = std::to_string(chunk->seq[event]) + " " + std::to_string(static_cast<int>(chunk->kind[event]));
        if (chunk->kind[event] == EventKind::alloc) {
          const Alloc row = chunk->tables.alloc.row(allocs);
          const Site& site = reader.dictionaries().sites.at(std::to_underlying(row.site));
          text += " " + std::to_string(chunk->first_alloc + allocs++) + " " + std::to_string(row.address) + " " +
                  reader.dictionaries().strings.at(std::to_underlying(site.op));
        } else if (chunk->kind[event] == EventKind::free_) {
          text += " " + std::to_string(chunk->tables.free.row(frees++).alloc);
        }
        out.push_back(text);
      }
    }
    return out;
  }
};

TEST_F(Compaction, EventsAndNamesStayAndTheFileShrinks) {
  std::vector<std::string> before;
  std::uint64_t bytes_before = 0;
  {
    Writer writer = create();
    fill(writer, 200);
    before = events();  // of the file as it grows
    bytes_before = writer.bytes();
    EXPECT_EQ(open().chunks(), 200u);
    ASSERT_TRUE(writer.finish());
  }
  EXPECT_EQ(events(), before);
  const Reader reader = open();
  EXPECT_EQ(reader.chunks(), 1u);
  EXPECT_FALSE(reader.damage().truncated);
  EXPECT_LT(std::filesystem::file_size(path_), bytes_before / 2);
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".compact"));
}

TEST_F(Compaction, FewChunksStayAsTheyAre) {
  Writer writer = create();
  fill(writer, 5);
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(open().chunks(), 5u);
}

TEST_F(Compaction, AFailureLeavesTheFileAsItWas) {
  Writer writer = create();
  fill(writer, 40);
  const std::vector<std::string> before = events();
  std::filesystem::create_directory(path_.string() + ".compact");  // in the way
  std::ofstream(path_.string() + ".compact/something") << "x";
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(events(), before);
  EXPECT_EQ(open().chunks(), 40u);
}

}  // namespace
}  // namespace vramscope::trace
