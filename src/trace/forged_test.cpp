// What the reader makes of files whose checksums are correct and whose content is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/block.h"
#include "trace/column.h"
#include "trace/test_file.h"

namespace vramscope::trace {
namespace {

using ::testing::HasSubstr;

class Forged : public TestFile {
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
  EXPECT_THAT(chunk_error(payload, 2), HasSubstr("the table of an event kind is missing"));
  put_table(payload, {9, 0, 3, 0});
  EXPECT_THAT(chunk_error(payload, 2), HasSubstr("more or fewer rows"));
}

TEST_F(Forged, NamesThatAreNotThere) {
  support::Buffer payload = common({10});
  put_table(payload, {10, 0, 1, 1});
  put_column(payload, encode_plain(1, Values{5}, data_));
  EXPECT_THAT(chunk_error(payload, 1), HasSubstr("refers to something that the file does not contain"));
}

TEST_F(Forged, SitesThatAreNotThere) {
  support::Buffer payload = common({1});
  put_table(payload, {1, 0, 1, 1});
  put_column(payload, encode_dict(1, Values{0}, data_));
  EXPECT_THAT(chunk_error(payload, 1, 1), HasSubstr("refers to something that the file does not contain"));
}

TEST_F(Forged, FreesBeforeTheFirstAllocation) {
  support::Buffer payload = common({2});
  put_table(payload, {2, 0, 1, 1});
  support::Buffer array;
  put_array(array, Values{1});
  put_column(payload, {1, Transform::back_reference, 0, array});
  EXPECT_THAT(chunk_error(payload, 1), HasSubstr("the file has no pool"));

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
      EXPECT_THAT(chunk.error().message, HasSubstr("lists ordinals but is not thinned"));
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
  EXPECT_THAT(error({0, 2}, {512}), HasSubstr("reuses the address of a block that was not freed"));
  EXPECT_THAT(error({1, 0}, {512}), HasSubstr("reuses the address of a block that was not freed"));
  EXPECT_THAT(error({0, std::uint64_t{1} << 63}, {512}), HasSubstr("reuses the address of a block that was not freed"));
  EXPECT_THAT(error({0, 1}, {512, 768}), HasSubstr("is inconsistent"));
  EXPECT_THAT(error({0, 1, 1}, {512}), HasSubstr("is inconsistent"));
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
  EXPECT_THAT(open().damage().message, HasSubstr("an entry refers to a missing one"));
}

}  // namespace
}  // namespace vramscope::trace
