#include "collect/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "collect/recover.h"
#include "collect/spool/fake_recorder.h"
#include "trace/reader.h"

namespace vramscope::collect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kNobody = 4'194'303;  // above any pid that is in use

struct Row {
  trace::EventKind kind;
  std::uint64_t seq;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    options_.output = folder_.path();
    options_.spool_folder = folder_.path();
    options_.host = "host";
    options_.say = [this](const std::string& text) { said_ += text; };
    recorder_.take(0, 11);
    recorder_.take(1, 12);
    recorder_.text(0, 1, "pool");
    recorder_.pool(1);
  }

  void open() { session_ = Session::open(recorder_.path(), options_, clock_, sampler_).value(); }

  TraceInfo finish(const std::map<std::string, std::string>& ending = {}) { return session_->finish(ending); }

  // What the trace holds of the recorder's own events.
  std::vector<std::uint64_t> numbers(const TraceInfo& info) {
    const auto reader = trace::Reader::open(info.path).value();
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < reader.chunks(); ++i) {
      const auto chunk = reader.chunk(i).value();
      for (std::size_t j = 0; j < chunk.kind.size(); ++j)
        if (chunk.kind[j] == trace::EventKind::alloc || chunk.kind[j] == trace::EventKind::free_) all.push_back(chunk.seq[j]);
    }
    return all;
  }

  bool order_is_exact(const TraceInfo& info) {
    const auto reader = trace::Reader::open(info.path).value();
    return reader.chunk(reader.chunks() - 1).value().tables.totals.order_exact.back();
  }

  std::vector<std::string> ops(const TraceInfo& info) {
    const auto reader = trace::Reader::open(info.path).value();
    const auto& names = reader.dictionaries();
    std::vector<std::string> all;
    for (std::size_t i = 0; i < reader.chunks(); ++i) {
      const auto chunk = reader.chunk(i).value();
      for (const trace::SiteId site : chunk.tables.alloc.site)
        all.push_back(names.strings[static_cast<std::size_t>(names.sites[static_cast<std::size_t>(site)].op)]);
    }
    return all;
  }

  TestFolder folder_;
  FakeRecorder recorder_{folder_.path(), kNobody};
  CollectOptions options_;
  TickClock clock_;
  Sampler sampler_{0};
  std::unique_ptr<Session> session_;
  std::string said_;
};

TEST_F(SessionTest, MergesThreadsByNumber) {
  open();
  for (int i = 0; i < 100; ++i) {
    recorder_.alloc(static_cast<std::uint32_t>(i % 2), recorder_.draw(), static_cast<std::uint64_t>(i + 1) << 12, 256);
    if (i % 30 == 0) session_->poll(static_cast<std::uint64_t>(i));
  }
  const TraceInfo info = finish();
  const auto all = numbers(info);
  ASSERT_EQ(all.size(), 100u);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.totals_check, "equal");
  EXPECT_THAT(info.losses, IsEmpty());
}

TEST_F(SessionTest, TheOrderOfASingleThreadIsKnownWithoutALock) {
  open();
  recorder_.header().pools[0].flags = 0;
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  recorder_.alloc(0, recorder_.draw(), 0x2000, 256);
  EXPECT_TRUE(order_is_exact(finish()));
}

TEST_F(SessionTest, TheOrderOfTwoThreadsIsNotKnownWithoutALock) {
  open();
  recorder_.header().pools[0].flags = 0;
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  recorder_.alloc(1, recorder_.draw(), 0x2000, 256);
  EXPECT_FALSE(order_is_exact(finish()));
}

TEST_F(SessionTest, AThreadWhoseEventsWereLostMayHaveBeenAnother) {
  open();
  recorder_.header().pools[0].flags = 0;
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  ++recorder_.header().pools[0].allocs;
  EXPECT_FALSE(order_is_exact(finish()));
}

TEST_F(SessionTest, ANumberThatNeverComesIsAGapAndStallsNothing) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  recorder_.draw();
  recorder_.alloc(0, recorder_.draw(), 0x3000, 256);
  session_->poll(1);
  session_->poll(10'000'000);
  const TraceInfo info = finish();
  EXPECT_THAT(numbers(info), ElementsAre(1, 3));
  EXPECT_EQ(info.losses.at(trace::LossKind::gap), 1u);
}

TEST_F(SessionTest, ALateEventIsWrittenAndCounted) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  const std::uint64_t slow = recorder_.draw();
  recorder_.alloc(0, recorder_.draw(), 0x3000, 256);
  session_->poll(1);
  session_->poll(10'000'000);
  recorder_.alloc(1, slow, 0x2000, 256);
  const TraceInfo info = finish();
  EXPECT_THAT(numbers(info), ElementsAre(1, 3, 2));
  EXPECT_EQ(info.losses.at(trace::LossKind::late), 1u);
  EXPECT_FALSE(info.losses.contains(trace::LossKind::gap));
}

TEST_F(SessionTest, ANameMayComeAfterItsUse) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256, 5);
  session_->poll(1);
  recorder_.text(1, 5, "MatMul");
  session_->poll(2);
  EXPECT_THAT(ops(finish()), ElementsAre("MatMul"));
}

// The header shows a pool before the record with its name is read.
TEST_F(SessionTest, APoolsNameMayComeAfterItsTotals) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  recorder_.header().pools[recorder_.pool(7)].allocs = 1;
  session_->poll(1);
  session_->poll(10'000'000);  // long enough for totals to be written
  recorder_.text(1, 7, "a second pool");
  session_->poll(10'000'001);
  const auto reader = trace::Reader::open(finish().path).value();
  std::vector<std::string> names;
  for (const trace::Pool& pool : reader.dictionaries().pools)
    names.push_back(reader.dictionaries().strings[static_cast<std::size_t>(pool.name)]);
  EXPECT_THAT(names, testing::Contains("a second pool"));
  EXPECT_THAT(names, testing::Not(testing::Contains("unknown")));
}

// Analysis takes their order for the model's.
TEST_F(SessionTest, SourcesOfOpsAreInTheOrderInWhichTheOpsWereMade) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  recorder_.text(0, 6, "second");
  recorder_.text(0, 7, "third");
  for (const std::uint32_t op : {7u, 6u, 5u}) {
    spool::OpSourceRecord source{};
    source.head.kind = spool::RecordKind::op_source;
    source.head.slots = spool::slots_of<spool::OpSourceRecord>;
    source.op = op;
    recorder_.append(0, &source, sizeof source);
  }
  session_->poll(1);
  session_->poll(10'000'000);  // long enough for a flush
  recorder_.text(1, 5, "first");
  session_->poll(10'000'001);
  const auto reader = trace::Reader::open(finish().path).value();
  std::vector<std::string> names;
  for (const trace::OpSource& source : reader.dictionaries().op_sources)
    names.push_back(reader.dictionaries().strings.at(std::to_underlying(source.op)));
  EXPECT_THAT(names, ElementsAre("first", "second", "third"));
}

TEST_F(SessionTest, ANameThatNeverComesIsCounted) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256, 5);
  const TraceInfo info = finish();
  EXPECT_THAT(ops(info), ElementsAre(""));
  EXPECT_EQ(info.losses.at(trace::LossKind::names), 1u);
}

TEST_F(SessionTest, WithoutMemoryNoTrace) {
  open();
  spool::SettingRecord setting{};
  setting.head.seq = recorder_.draw();
  setting.head.kind = spool::RecordKind::setting;
  setting.head.slots = spool::slots_of<spool::SettingRecord>;
  recorder_.append(0, &setting, sizeof setting);
  finish();
  EXPECT_FALSE(session_->has_trace());
}

TEST_F(SessionTest, WhatPythonReportsBeforeAnythingIsAllocatedIsKept) {
  open();
  recorder_.text(0, 7, "überholt");
  recorder_.text(0, 8, "n: 1 -> 2");
  recorder_.text(0, 9, "/data/Größe.py");
  spool::ReportRecord report{};
  report.head.kind = spool::RecordKind::report;
  report.head.slots = spool::slots_of<spool::ReportRecord>;
  report.head.small = std::to_underlying(trace::EventKind::retrace);
  std::ranges::copy(std::array<std::uint32_t, 3>{7, 8, 9}, report.text);
  report.number[0] = 17;
  report.number[1] = 5;
  for (const auto kind : {report.head.small, std::uint16_t{3}, std::uint16_t{0xffff}}) {  // only the first is reported
    report.head.seq = recorder_.draw();
    report.head.small = kind;
    recorder_.append(0, &report, sizeof report);
  }
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  const auto reader = trace::Reader::open(finish().path).value();
  std::vector<trace::Retrace> found;
  for (std::size_t i = 0; i < reader.chunks(); ++i) {
    const auto chunk = reader.chunk(i).value();
    for (std::size_t row = 0; row < chunk.tables.retrace.size(); ++row) found.push_back(chunk.tables.retrace.row(row));
    EXPECT_EQ(chunk.tables.region.size(), 0u);
  }
  ASSERT_EQ(found.size(), 1u);
  const auto text = [&](trace::StringId id) { return reader.dictionaries().strings.at(std::to_underlying(id)); };
  EXPECT_EQ(text(found[0].function), "überholt");
  EXPECT_EQ(text(found[0].reason), "n: 1 -> 2");
  EXPECT_EQ(text(found[0].file), "/data/Größe.py");
  EXPECT_EQ(found[0].line, 17u);
  EXPECT_EQ(found[0].traces, 5u);
}

TEST_F(SessionTest, TotalsThatDisagreeAreSaid) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  recorder_.header().pools[0].peak_bytes = 999;
  EXPECT_THAT(finish().totals_check, HasSubstr("peak bytes 256 in the events, 999 counted"));
}

TEST_F(SessionTest, BlocksFromBeforeTheRecordingAreNoDifference) {
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  spool::Pool& pool = recorder_.header().pools[0];
  pool.before_bytes = 700;
  pool.live_bytes += 500;  // 200 of them were freed since
  pool.peak_bytes += 700;
  EXPECT_EQ(finish().totals_check, "equal");
}

TEST_F(SessionTest, AFolderThatCannotBeWrittenLosesEventsNotTheSession) {
  options_.output = folder_.path() / "absent";
  open();
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  session_->poll(1);
  const TraceInfo info = finish();
  EXPECT_THAT(said_, HasSubstr("cannot write the trace"));
  EXPECT_EQ(info.losses.at(trace::LossKind::trace_write), 1u);
}

TEST_F(SessionTest, NeverOverAnExistingFile) {
  open();
  const auto taken = folder_.path() / (session_->trace_stem() + ".vram");
  {
    std::ofstream(taken) << "mine";
  }
  recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  const TraceInfo info = finish();
  EXPECT_EQ(info.path.filename().string(), session_->trace_stem() + "-2.vram");
  EXPECT_EQ(std::filesystem::file_size(taken), 4u);
}

TEST_F(SessionTest, EndsWhenNobodyHoldsTheLockAndTheProcessIsGone) {
  open();
  EXPECT_TRUE(session_->has_ended());
}

TEST_F(SessionTest, ADamagedCountOfEventsIsNotBelieved) {
  open();
  for (int i = 0; i < 3; ++i) recorder_.alloc(0, recorder_.draw(), static_cast<std::uint64_t>(i + 1) << 12, 256, 0);
  recorder_.header().next_seq = std::uint64_t{1} << 60;
  const TraceInfo info = finish();
  EXPECT_THAT(numbers(info), ElementsAre(1, 2, 3));
  EXPECT_THAT(info.losses, IsEmpty());
}

// The first collector stores some events, gives their segments back and is gone without an end; the process writes on.
TEST_F(SessionTest, RecoveryContinuesWhereTheCollectorDied) {
  open();
  recorder_.text(0, 5, "MatMul");
  for (int i = 0; i < 10; ++i) recorder_.alloc(0, recorder_.draw(), static_cast<std::uint64_t>(i + 1) << 12, 256, 5);
  recorder_.seal(0);
  session_->poll(5'000'000);  // stored and flushed
  EXPECT_EQ(recorder_.segment(0).state, spool::SegmentState::free);
  recorder_.take(0, 11);
  recorder_.free(0, recorder_.draw(), 1 << 12, 256);
  recorder_.alloc(1, recorder_.draw(), 0x777000, 512, 5);
  session_->poll(5'000'001);  // read, not flushed
  session_.reset();

  const auto recovered = recover(support::OwnedFolder::open(options_.spool_folder).value(), options_);
  ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
  EXPECT_THAT(recovered->remarks, IsEmpty());
  ASSERT_EQ(recovered->traces.size(), 1u);
  const TraceInfo& info = recovered->traces[0];
  EXPECT_THAT(numbers(info), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(ops(info), testing::Each("MatMul")) << "the name's own segment was given back long ago";
  EXPECT_EQ(info.totals_check, "equal");
  EXPECT_THAT(info.losses, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(recorder_.path()));
}

}  // namespace
}  // namespace vramscope::collect
