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
  EXPECT_THAT(reader.damage().message, HasSubstr("are no part of a trace"));
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

TEST_F(Damaged, ANewerMajorVersionIsRefusedAndNamed) {
  support::Buffer header;
  put_header(header, {kMajor + 1, 7, 1});
  set_bytes({reinterpret_cast<const char*>(header.data()), header.size()});
  EXPECT_THAT(open_error(), HasSubstr("written in trace format 2.7, this vramscope reads up to 1.0"));
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

// Correct checksums around content that lies.
class Forged : public Damaged {
 protected:
  void forge(BlockHead head, const support::Buffer& payload) {
    support::Buffer file;
    put_header(file, {kMajor, kMinor, 1});
    put_block(file, head, payload, 1);
    set_bytes({reinterpret_cast<const char*>(file.data()), file.size()});
  }
  std::string chunk_error(const support::Buffer& payload, std::uint32_t events, std::uint32_t allocs = 0) {
    forge({.type = 2, .events = events, .allocs = allocs}, payload);
    const auto chunk = open().chunk(0);
    return chunk ? "no error" : chunk.error().message;
  }
  // The columns of all events for `kinds`, all else 0.
  support::Buffer common(const Values& kinds) {
    support::Buffer payload;
    support::Buffer data;
    put_table(payload, {0, 0, kinds.size(), 1});
    put_column(payload, encode_plain(1, kinds, data));
    return payload;
  }
  // Names of a pool at the level of tensors and of a site that asks it for 100 bytes.
  support::Buffer one_pool_and_site() {
    support::Buffer names;
    put_table(names, {2, 0, 1, 1});
    put_column(names, encode_plain(3, Values{2}, data_));
    put_table(names, {3, 0, 1, 1});
    put_column(names, encode_plain(2, Values{100}, data_));
    return names;
  }
  support::Buffer data_;
};

TEST_F(Forged, AChunkOfMoreEventsThanAllowed) {
  support::Buffer payload = common(Values(kMaxChunkEvents + 1, 9));
  EXPECT_THAT(chunk_error(payload, kMaxChunkEvents + 1), HasSubstr("more events than the format allows"));
  EXPECT_THAT(chunk_error(payload, 1), HasSubstr("more events than the format allows"));
}

TEST_F(Forged, RowsThatAreNotThere) {
  support::Buffer payload = common({9, 9});
  EXPECT_THAT(chunk_error(payload, 2), HasSubstr("the table of a kind of event is missing"));
  put_table(payload, {9, 0, 3, 0});
  EXPECT_THAT(chunk_error(payload, 2), HasSubstr("more or fewer rows"));
}

TEST_F(Forged, NamesThatAreNotThere) {
  support::Buffer payload = common({10});
  put_table(payload, {10, 0, 1, 1});
  put_column(payload, encode_plain(1, Values{5}, data_));
  EXPECT_THAT(chunk_error(payload, 1), HasSubstr("refers to something that is not in the file"));
}

TEST_F(Forged, SitesThatAreNotThere) {
  support::Buffer payload = common({1});
  put_table(payload, {1, 0, 1, 1});
  put_column(payload, encode_dict(1, Values{0}, data_));
  EXPECT_THAT(chunk_error(payload, 1, 1), HasSubstr("refers to something that is not in the file"));
}

TEST_F(Forged, FreesBeforeTheFirstAllocation) {
  support::Buffer payload = common({2});
  put_table(payload, {2, 0, 1, 1});
  support::Buffer array;
  put_array(array, Values{1});
  put_column(payload, {1, Transform::back_reference, 0, array});
  EXPECT_THAT(chunk_error(payload, 1), HasSubstr("the file no pool"));

  support::Buffer names;
  put_table(names, {2, 0, 1, 1});
  put_column(names, encode_plain(3, Values{2}, data_));
  support::Buffer file;
  put_header(file, {kMajor, kMinor, 1});
  put_block(file, {.type = 1}, names, 1);
  put_block(file, {.type = 2, .events = 1}, payload, 1);
  set_bytes({reinterpret_cast<const char*>(file.data()), file.size()});
  const auto chunk = open().chunk(0);
  ASSERT_FALSE(chunk);
  EXPECT_THAT(chunk.error().message, HasSubstr("before the first"));
}

TEST_F(Forged, OrdinalsInAChunkThatIsNotThinned) {
  const support::Buffer names = one_pool_and_site();
  support::Buffer payload;
  put_table(payload, {0, 0, 1, 2});
  put_column(payload, encode_plain(1, Values{1}, data_));
  put_column(payload, encode_plain(5, Values{1000}, data_));
  put_table(payload, {1, 0, 1, 3});
  put_column(payload, encode_dict(1, Values{0}, data_));
  support::Buffer array;
  put_array(array, Values{512});
  put_column(payload, {2, Transform::by_site, 0, array});
  put_column(payload, {3, Transform::over_requested, 0, array});
  for (const std::uint16_t flags : {std::uint16_t{0}, kThinned}) {
    support::Buffer file;
    put_header(file, {kMajor, kMinor, 1});
    put_block(file, {.type = 1}, names, 1);
    put_block(file, {.type = 2, .flags = flags, .events = 1, .allocs = 1}, payload, 1);
    set_bytes({reinterpret_cast<const char*>(file.data()), file.size()});
    const auto chunk = open().chunk(0);
    EXPECT_EQ(chunk.has_value(), flags == kThinned);
    if (!chunk) {
      EXPECT_THAT(chunk.error().message, HasSubstr("lists ordinals and is not thinned"));
    }
  }
}

TEST_F(Forged, AddressesThatNobodyFreed) {
  const support::Buffer names = one_pool_and_site();
  const auto error = [&](const Values& ago, const Values& moved) {
    support::Buffer payload = common({1, 2, 1});
    put_table(payload, {1, 0, 2, 3});
    put_column(payload, encode_dict(1, Values{0, 0}, data_));
    support::Buffer address;
    put_sized_array(address, ago);
    put_array(address, moved);
    put_column(payload, {2, Transform::reused, 0, address});
    support::Buffer granted;
    put_array(granted, Values{0, 0});
    put_column(payload, {3, Transform::over_requested, 0, granted});
    put_table(payload, {2, 0, 1, 1});
    support::Buffer back;
    put_array(back, Values{1});
    put_column(payload, {1, Transform::back_reference, 0, back});
    support::Buffer file;
    put_header(file, {kMajor, kMinor, 1});
    put_block(file, {.type = 1}, names, 1);
    put_block(file, {.type = 2, .events = 3, .allocs = 2}, payload, 1);
    set_bytes({reinterpret_cast<const char*>(file.data()), file.size()});
    const auto chunk = open().chunk(0);
    return chunk ? "no error" : chunk.error().message;
  };
  EXPECT_EQ(error({0, 1}, {512}), "no error");
  EXPECT_THAT(error({0, 2}, {512}), HasSubstr("said to be one that was freed"));
  EXPECT_THAT(error({1, 0}, {512}), HasSubstr("said to be one that was freed"));
  EXPECT_THAT(error({0, std::uint64_t{1} << 63}, {512}), HasSubstr("said to be one that was freed"));
  EXPECT_THAT(error({0, 1}, {512, 768}), HasSubstr("does not hold what it says"));
  EXPECT_THAT(error({0, 1, 1}, {512}), HasSubstr("does not hold what it says"));
}

TEST_F(Forged, LengthsBeyondTheEnd) {
  support::Buffer payload;
  put_table(payload, {0, 0, 1, 1});
  support::put_varint(payload, 1);
  support::put_varint(payload, 0);
  support::put_varint(payload, std::uint64_t{1} << 62);
  EXPECT_THAT(chunk_error(payload, 1), HasSubstr("cannot be read"));
}

TEST_F(Forged, AFewBytesCannotAskForManyEntries) {
  support::Buffer payload;
  put_table(payload, {3, 0, 4096, 1});
  put_column(payload, encode_plain(2, Values(4096, 1), data_));
  forge({.type = 1}, payload);
  const Reader reader = open();
  EXPECT_THAT(reader.damage().message, HasSubstr("longer than the format allows"));
  EXPECT_TRUE(reader.dictionaries().sites.empty());
}

TEST_F(Forged, EntriesThatReferToOthersThatAreNotThere) {
  support::Buffer payload;
  put_table(payload, {6, 0, 1, 1});
  put_column(payload, encode_plain(2, Values{77}, data_));
  forge({.type = 1}, payload);
  EXPECT_THAT(open().damage().message, HasSubstr("an entry refers to one that is not there"));
}

}  // namespace
}  // namespace vramscope::trace
