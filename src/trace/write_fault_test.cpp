// What the writer does when the disk does not take what it is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "support/file.h"
#include "trace/test_file.h"

namespace vramscope::trace {
namespace {

using ::testing::HasSubstr;

// A disk in memory that is full after `room` bytes, and keeps the start of what did not fit.
class SmallDisk final : public support::Sink {
 public:
  SmallDisk(std::string& content, std::size_t& room) : content_(&content), room_(&room) {}

  Status append(support::ByteSpan bytes) override {
    content_->resize(size_);
    const std::size_t fits = std::min(bytes.size(), *room_ - std::min(*room_, size_));
    content_->append(reinterpret_cast<const char*>(bytes.data()), fits);
    if (fits < bytes.size()) return fail("disk full");
    size_ += fits;
    return {};
  }
  std::uint64_t size() const override { return size_; }

 private:
  std::string* content_;
  std::size_t* room_;
  std::size_t size_ = 0;
};

class WriteFault : public TestFile {
 protected:
  Result<Writer> create_on_disk() { return Writer::create(std::make_unique<SmallDisk>(content_, room_), {}); }

  void sample(Writer& writer, std::uint64_t value) { writer.append({value, value, {}}, HostSample{value, 0}); }

  std::vector<std::uint64_t> samples() {
    std::vector<std::uint64_t> values;
    const Reader reader = open();
    for (std::size_t i = 0; i < reader.chunks(); ++i) {
      const auto chunk = reader.chunk(i);
      EXPECT_TRUE(chunk) << chunk.error().message;
      values.insert(values.end(), chunk->tables.host_sample.rss.begin(), chunk->tables.host_sample.rss.end());
    }
    return values;
  }

  std::string content_;
  std::size_t room_ = 0;
};

TEST_F(WriteFault, AFileThatCannotTakeItsHeaderIsNotCreated) {
  room_ = 39;
  EXPECT_FALSE(create_on_disk());
}

TEST_F(WriteFault, WhateverFitsTheFileHoldsWholeBlocksAndFlushTellsTheRest) {
  room_ = 100000;
  {
    Writer writer = std::move(*create_on_disk());
    for (std::uint64_t i = 0; i < 3; ++i) {
      sample(writer, i);
      ASSERT_TRUE(writer.flush());
    }
    ASSERT_TRUE(writer.finish());
  }
  const std::size_t whole = content_.size();
  for (std::size_t room = 40; room < whole; ++room) {
    room_ = room;
    std::vector<std::uint64_t> flushed;
    bool finished = false;
    {
      Writer writer = std::move(*create_on_disk());
      for (std::uint64_t i = 0; i < 3; ++i) {
        sample(writer, i);
        if (writer.flush()) flushed.push_back(i);
      }
      finished = writer.finish().has_value();
    }
    EXPECT_FALSE(finished) << room;
    set_bytes(content_);
    EXPECT_EQ(samples(), flushed) << room;
  }
}

TEST_F(WriteFault, WhatWasDroppedIsCountedAsSoonAsThereIsRoomAgain) {
  room_ = 100000;
  Writer writer = std::move(*create_on_disk());
  sample(writer, 1);
  ASSERT_TRUE(writer.flush());
  room_ = content_.size() + 10;
  for (const std::uint64_t value : {2u, 3u, 4u}) sample(writer, value);
  EXPECT_FALSE(writer.flush());
  sample(writer, 5);
  EXPECT_FALSE(writer.flush());
  room_ = 100000;
  sample(writer, 6);
  ASSERT_TRUE(writer.flush());
  sample(writer, 7);
  ASSERT_TRUE(writer.finish());

  set_bytes(content_);
  EXPECT_EQ(samples(), (std::vector<std::uint64_t>{1, 6, 7}));
  const Reader reader = open();
  EXPECT_EQ(reader.damage().message, "");
  EXPECT_EQ(reader.chunk(1)->tables.lost.row(0), (Lost{LossKind::trace_write, 4}));
  EXPECT_EQ(reader.chunk(2)->tables.lost.size(), 0u);
}

TEST_F(WriteFault, AllocationsThatWereDroppedLeaveTheirFreesUnmatched) {
  room_ = 100000;
  Writer writer = std::move(*create_on_disk());
  const PoolId pool = writer.pool({writer.string("p"), 0, Level::tensor, Memory::device, Framework::none});
  const SiteId site = writer.site({.pool = pool, .requested = 100});
  writer.alloc({1, 1, {}}, {site, 256, 256, 0});
  ASSERT_TRUE(writer.flush());
  room_ = 0;
  writer.alloc({2, 2, {}}, {site, 512, 256, 0});
  EXPECT_FALSE(writer.flush());
  room_ = 100000;
  writer.alloc({3, 3, {}}, {site, 768, 256, 0});
  writer.free({4, 4, {}}, pool, 512, 0);
  writer.free({5, 5, {}}, pool, 768, 0);
  writer.free({6, 6, {}}, pool, 256, 0);
  ASSERT_TRUE(writer.finish());

  set_bytes(content_);
  const Reader reader = open();
  EXPECT_EQ(reader.allocs(), 2u);
  const auto chunk = reader.chunk(1);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->first_alloc, 1u);
  EXPECT_EQ(chunk->tables.free.alloc, (std::vector<std::uint64_t>{kNone, 1, 0}));
}

TEST_F(WriteFault, AppendingManyEventsToAFullDiskKeepsMemoryBoundedAndIsToldByTheNextFlush) {
  room_ = 40;
  Writer writer = std::move(*create_on_disk());
  for (std::uint64_t i = 0; i < 200000; ++i) sample(writer, i);
  room_ = 10000000;
  EXPECT_FALSE(writer.flush());
  ASSERT_TRUE(writer.finish());
  set_bytes(content_);
  const Reader reader = open();
  EXPECT_EQ(reader.chunk(0)->tables.lost.row(0).count + reader.chunk(0)->tables.host_sample.size(), 200000u);
}

// The real file on a file system that refuses to let it grow: nothing of the refused block stays.
// The limit on file sizes stands for a full disk: what had room to be kept free has room to be written at the end.
TEST_F(WriteFault, LastWordsFitWhereEventsDidNot) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  Writer writer = std::move(*Writer::create(path_, {}));
  const rlimit small{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const PoolId pool = writer.pool({});
  for (std::uint64_t i = 1; i <= 60'000; ++i) {
    const SiteId site = writer.site({.pool = pool, .requested = i * i * 7919});
    writer.alloc({i, i, {}}, {site, i << 20, i * 977, 0});
  }
  const Status events = writer.flush();
  sample(writer, 4);
  const Status loss = writer.flush();  // what follows is not the first after a loss
  sample(writer, 5);
  const Status end = writer.finish();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(events);
  EXPECT_TRUE(loss) << loss.error().message;
  EXPECT_TRUE(end) << end.error().message;
  EXPECT_EQ(writer.dropped(), 60'000u);
  EXPECT_THAT(samples(), testing::ElementsAre(4, 5));
  EXPECT_FALSE(open().damage().truncated);
}

TEST_F(WriteFault, ARealFileKeepsWholeBlocksOnly) {
  Writer writer = create();
  sample(writer, 1);
  ASSERT_TRUE(writer.flush());
  const std::uint64_t before = writer.bytes();

  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{before + 20, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  sample(writer, 2);
  const Status status = writer.flush();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("a.vram: cannot write: "));
  EXPECT_EQ(std::filesystem::file_size(path_), before);
  sample(writer, 3);
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(samples(), (std::vector<std::uint64_t>{1, 3}));
}

}  // namespace
}  // namespace vramscope::trace
