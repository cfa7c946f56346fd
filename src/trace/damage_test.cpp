// What the reader makes of files that are not as they were written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/compress.h"
#include "trace/block.h"
#include "trace/column.h"
#include "trace/test_file.h"

namespace vramscope::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Damaged : public TestFile {
 protected:
  // Four chunks with names in between, and a footer.
  void write_small() {
    Writer writer = create({.start_realtime_us = 1});
    const PoolId pool = writer.pool({writer.string("pool"), 0, Level::tensor, Memory::device, Framework::none});
    std::uint64_t seq = 0;
    for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
      const SiteId site =
          writer.site({.pool = pool, .requested = 100 + chunk, .op = writer.string("op" + std::to_string(chunk))});
      for (std::uint64_t i = 0; i < 5; ++i, ++seq) writer.alloc({seq, seq, {}}, {site, 4096 * (seq + 1), 256, 0});
      writer.free({seq, seq, {}}, pool, 4096 * (seq - chunk), 0);
      EXPECT_TRUE(writer.flush());
    }
    EXPECT_TRUE(writer.finish());
    whole_ = bytes();
    const Reader reader = open();
    for (std::size_t i = 0; i < reader.chunks(); ++i) chunks_.push_back(*reader.chunk(i));
    EXPECT_EQ(chunks_.size(), 4u);
  }

  // How many chunks can be read. Each that can holds what was written.
  std::size_t readable(const Reader& reader) {
    std::size_t good = 0;
    for (std::size_t i = 0; i < reader.chunks(); ++i) {
      const auto chunk = reader.chunk(i);
      if (!chunk) {
        EXPECT_THAT(chunk.error().message, AllOf(HasSubstr("a.vram: the "), HasSubstr(" at byte "), Not(HasSubstr("\n"))));
        continue;
      }
      ++good;
      const bool known =
          std::ranges::any_of(chunks_, [&](const Chunk& written) { return same_but_for_matches(written, *chunk); });
      EXPECT_TRUE(known) << "chunk " << i << " is not what was written";
    }
    return good;
  }

  std::string open_error() {
    const auto reader = Reader::open(path_);
    if (reader) return "no error";
    EXPECT_THAT(reader.error().message, Not(HasSubstr("\n")));
    return reader.error().message;
  }

  std::string whole_;
  std::vector<Chunk> chunks_;

 private:
  // The ordinals of frees depend on which chunks before could be read.
  static bool same_but_for_matches(Chunk a, Chunk b) {
    a.tables.free = {};
    b.tables.free = {};
    return same_events(a, b);
  }
};

TEST_F(Damaged, CutAtEveryLengthItIsReadableUpToTheCut) {
  write_small();
  std::size_t before = 0;
  for (std::size_t length = 0; length < whole_.size(); ++length) {
    set_bytes(std::string_view(whole_).substr(0, length));
    const auto reader = Reader::open(path_);
    ASSERT_EQ(reader.has_value(), length >= kHeaderBytes) << length;
    if (!reader) continue;
    EXPECT_TRUE(reader->damage().truncated) << length;
    const std::size_t good = readable(*reader);
    EXPECT_EQ(good, reader->chunks()) << "a chunk that is not whole must not be there at all, length " << length;
    EXPECT_GE(good, before) << length;
    before = good;
  }
  EXPECT_EQ(before, 4u);
}

TEST_F(Damaged, ACutInsideABlockIsToldACutBetweenBlocksIsNormal) {
  write_small();
  const std::size_t second = whole_.find("VBLK", whole_.find("VBLK") + 1);
  set_bytes(std::string_view(whole_).substr(0, second));
  EXPECT_EQ(open().damage().message, "");
  set_bytes(std::string_view(whole_).substr(0, second + 70));
  const Reader reader = open();
  EXPECT_EQ(reader.damage().message, "the last 70 bytes are an unfinished block and were left out");
  EXPECT_EQ(reader.damage().offset, second);
  EXPECT_EQ(reader.damage().bytes, 70u);
}

TEST_F(Damaged, AnyChangedByteIsNoticedAndTheRestStaysReadable) {
  write_small();
  const std::size_t first_chunk = whole_.find("VBLK", kHeaderBytes + 1);
  for (std::size_t place = 0; place < whole_.size(); ++place) {
    for (const char flip : {static_cast<char>(1 << (place % 8)), '\xff'}) {
      std::string changed = whole_;
      changed[place] = static_cast<char>(changed[place] ^ flip);
      set_bytes(changed);
      const auto reader = Reader::open(path_);
      ASSERT_EQ(reader.has_value(), place >= kHeaderBytes) << place;
      if (!reader) continue;
      const std::size_t good = readable(*reader);
      // One block is one chunk or the names of one chunk; but all need the pool, which is in the first.
      EXPECT_GE(good, place < first_chunk ? 0u : 3u) << place;
      // A damaged index or head costs nothing but the index; it shows as a file that did not end by itself.
      EXPECT_TRUE(!reader->damage().message.empty() || reader->damage().truncated || good == 4) << place;
      if (good < 4) {
        EXPECT_THAT(reader->damage().message, HasSubstr(" at byte ")) << place;
      }
    }
  }
}

TEST_F(Damaged, BytesLostInTheMiddleCostOnlyTheirBlocks) {
  write_small();
  const std::size_t middle = whole_.size() / 3;
  set_bytes(whole_.substr(0, middle) + whole_.substr(middle + 11));
  const Reader reader = open();
  EXPECT_TRUE(reader.damage().truncated);
  EXPECT_THAT(reader.damage().message, HasSubstr("do not belong to a trace"));
  EXPECT_GE(readable(reader), 2u);
}

TEST_F(Damaged, LostNamesCostTheEventsThatNeedThem) {
  write_small();
  const std::size_t first_chunk = whole_.find("VBLK", kHeaderBytes + 1);
  // The second names block holds op1 and its site.
  std::string changed = whole_;
  changed[changed.find("VBLK", first_chunk + 1) + kBlockHeadBytes + 5] ^= 1;
  set_bytes(changed);
  const Reader reader = open();
  EXPECT_THAT(reader.damage().message, HasSubstr("the names at byte"));
  EXPECT_EQ(reader.chunks(), 4u);
  EXPECT_EQ(readable(reader), 3u);
  EXPECT_FALSE(reader.chunk(1));
  EXPECT_EQ(reader.dictionaries().strings.at(3), "(lost)");
  EXPECT_EQ(reader.dictionaries().strings.at(4), "op2");
}

TEST_F(Damaged, FreesOfAllocationsThatCannotBeReadKeepTheirOrdinals) {
  write_small();
  std::size_t second_chunk = whole_.find("VBLK");
  for (int i = 0; i < 3; ++i) second_chunk = whole_.find("VBLK", second_chunk + 1);
  std::string changed = whole_;
  changed[second_chunk + kBlockHeadBytes] ^= 1;
  set_bytes(changed);
  const Reader reader = open();
  EXPECT_FALSE(reader.chunk(1));
  EXPECT_EQ(reader.allocs(), 20u);
  const auto third = reader.chunk(2);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->first_alloc, 10u);
  EXPECT_EQ(third->tables.free.alloc, chunks_[2].tables.free.alloc);
}

TEST_F(Damaged, ForeignFilesAreRefusedInOneLine) {
  set_bytes("");
  EXPECT_THAT(open_error(), HasSubstr("a.vram: the file is empty"));
  set_bytes("#!/bin/sh\nexit 0\n");
  EXPECT_THAT(open_error(), HasSubstr("a.vram: not a vramscope trace"));
  set_bytes(std::string(100000, '\0'));
  EXPECT_THAT(open_error(), HasSubstr("not a vramscope trace"));
  std::filesystem::remove(path_);
  EXPECT_THAT(open_error(), HasSubstr("No such file"));
  std::filesystem::create_directory(path_);
  EXPECT_THAT(open_error(), HasSubstr("Is a directory"));
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(open_error(), HasSubstr("not a regular file"));
}

// Bytes that this process has read so far, by the kernel's own count.
std::uint64_t bytes_read() {
  std::ifstream in("/proc/self/io");
  std::string word;
  std::uint64_t count = 0;
  in >> word >> count;
  EXPECT_EQ(word, "rchar:");
  return count;
}

// A hole costs its author nothing: it is neither read nor does it entitle the file to memory.
TEST_F(Damaged, HolesAreNotRead) {
  write_small();
  constexpr std::uint64_t kHole = std::uint64_t{4} << 30;
  const std::uint64_t memory = open().memory_limit();
  std::filesystem::resize_file(path_, whole_.size() + kHole);
  std::ofstream(path_, std::ios::binary | std::ios::app) << whole_.substr(kHeaderBytes);  // and good blocks after it
  const std::uint64_t before = bytes_read();
  const Reader reader = open();
  EXPECT_LT(bytes_read() - before, 16u << 20);
  EXPECT_EQ(readable(reader), 8u);
  EXPECT_LT(reader.memory_limit(), 2 * memory);
  EXPECT_LT(reader.most_events(), kHole / 1000);
  EXPECT_THAT(reader.damage().message, HasSubstr("do not belong to a trace"));
}

TEST_F(Damaged, ANewerMajorVersionIsRefusedAndNamed) {
  support::Buffer header;
  put_header(header, {kMajor + 1, 7, 1});
  set_bytes({reinterpret_cast<const char*>(header.data()), header.size()});
  EXPECT_THAT(open_error(), HasSubstr("uses trace format 2.7, but this vramscope reads only up to 1.3"));
}

// What a newer minor version may add: block types, tables, columns, kinds of events.
TEST_F(Damaged, AdditionsOfANewerMinorVersionAreSkipped) {
  support::Buffer file;
  put_header(file, {kMajor, kMinor + 1, 1});
  support::Buffer payload;
  support::Buffer data;
  put_block(file, {.type = 77}, support::bytes_of("something new"), 1);

  put_table(payload, {1, 1, 1, 2});       // one string, with a second column
  support::Buffer text = {2, 1, 1, 'x'};  // sized array: 2 bytes, constant, 1; then the text
  put_column(payload, {1, Transform::text, 0, text});
  put_column(payload, encode_plain(9, Values{5}, data));
  put_table(payload, {99, 0, 3, 1});
  put_column(payload, encode_plain(1, Values{1, 2, 3}, data));
  put_block(file, {.type = 1}, payload, 1);

  payload.clear();
  put_table(payload, {0, 0, 3, 5});
  put_column(payload, encode_plain(1, Values{9, 200, 9}, data));  // host_sample, unknown, host_sample
  put_column(payload, encode_plain(2, Values{1, 2, 3}, data));
  put_column(payload, encode_plain(3, Values{10, 20, 30}, data));
  put_column(payload, encode_plain(4, Values{0, 0, 0}, data));
  put_column(payload, encode_plain(63, Values{7, 7, 7}, data));
  put_table(payload, {200, 0, 1, 1});
  put_column(payload, {1, static_cast<Transform>(15), 0, text});
  put_table(payload, {9, 0, 2, 2});
  put_column(payload, encode_plain(1, Values{100, 200}, data));  // without its second column
  put_column(payload, encode_plain(1000, Values{1, 1}, data));
  put_block(file, {.type = 2, .events = 3}, payload, 1);
  set_bytes({reinterpret_cast<const char*>(file.data()), file.size()});

  const Reader reader = open();
  EXPECT_EQ(reader.damage().message, "");
  EXPECT_EQ(reader.dictionaries().strings, (std::vector<std::string>{"", "x"}));
  const auto chunk = reader.chunk(0);
  ASSERT_TRUE(chunk) << chunk.error().message;
  EXPECT_EQ(chunk->kind, (std::vector{EventKind::host_sample, EventKind::host_sample}));
  EXPECT_EQ(chunk->seq, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(chunk->tables.host_sample.row(1), (HostSample{200, 0}));
}

}  // namespace
}  // namespace vramscope::trace
