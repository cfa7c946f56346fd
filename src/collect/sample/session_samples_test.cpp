// Whose bytes are whose, where the devices speak of foreign process ids. The devices' lists are the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "collect/session.h"
#include "collect/spool/fake_recorder.h"
#include "trace/reader.h"

namespace vramscope::collect {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kTotal = 8192 * kMiB;
constexpr std::uint64_t kNobodys = 6 * kMiB;
constexpr DeviceProcess kOurs{70'001, 582 * kMiB};
constexpr DeviceProcess kOther{70'002, 818 * kMiB};

class ContainerTest : public testing::Test {
 protected:
  ContainerTest() {
    options_.output = folder_.path();
    options_.spool_folder = folder_.path();
    options_.host = "host";
    options_.say = [](const std::string&) {};
    recorder_.take(0, static_cast<std::uint32_t>(gettid()));
    recorder_.text(0, 1, "pool");
    recorder_.pool(1);
  }

  // A sample of the device, a round of the collector: what it does in this order.
  void sample(const std::vector<DeviceProcess>& processes) {
    now_us_ += 1'000'000;
    DeviceReading reading;
    reading.time_us = now_us_;
    reading.memory = {.used = used_by(processes), .free = kTotal - used_by(processes), .total = kTotal, .reserved = 0};
    reading.processes = processes;
    reading.processes_known = true;
    sampler_.keep(now_us_, {reading});
    if (session_ == nullptr) return;
    session_->poll(now_us_);
    session_->sample(now_us_);
  }

  void open() { session_ = Session::open(recorder_.path(), options_, clock_, sampler_).value(); }

  // The process allocates: the header shows a pool on the device, perhaps before its context was read.
  void use_device() {
    recorder_.header().pools[0].device = 0;
    recorder_.alloc(0, recorder_.draw(), 0x1000, 256);
  }

  void make_context(const std::vector<DeviceProcess>& there_then) {
    spool::ContextRecord record{};
    record.head.seq = recorder_.draw();
    record.head.ticks = monotonic_ns();
    record.head.kind = spool::RecordKind::context;
    record.head.slots = spool::slots_of<spool::ContextRecord>;
    record.free_bytes = kTotal - used_by(there_then);
    record.total_bytes = kTotal;
    recorder_.append(0, &record, sizeof record);
  }

  void finish() {
    const auto reader = trace::Reader::open(session_->finish({}).path).value();
    for (std::size_t i = 0; i < reader.chunks(); ++i) {
      const auto chunk = reader.chunk(i).value();
      const auto& samples = chunk.tables.device_sample.process;
      process_bytes_.insert(process_bytes_.end(), samples.begin(), samples.end());
      const auto& contexts = chunk.tables.context.bytes;
      context_bytes_.insert(context_bytes_.end(), contexts.begin(), contexts.end());
    }
  }

  static std::uint64_t used_by(const std::vector<DeviceProcess>& processes) {
    std::uint64_t sum = processes.empty() ? 0 : kNobodys;
    for (const DeviceProcess& process : processes) sum += process.bytes;
    return sum;
  }

  TestFolder folder_;
  FakeRecorder recorder_{folder_.path(), static_cast<std::uint32_t>(getpid())};
  CollectOptions options_;
  TickClock clock_;
  Sampler sampler_{10, DriverPids::foreign};
  std::unique_ptr<Session> session_;
  std::uint64_t now_us_ = 0;
  std::vector<std::uint64_t> process_bytes_, context_bytes_;
};

TEST_F(ContainerTest, TheOnlyNewProcessIsOurs) {
  sample({});
  open();
  make_context({{kOurs.pid, 518 * kMiB}});
  use_device();
  sample({{kOurs.pid, 518 * kMiB}});
  sample({kOurs});
  finish();
  EXPECT_EQ(process_bytes_.back(), kOurs.bytes);
  EXPECT_THAT(context_bytes_, ElementsAre(518 * kMiB));
}

// A sample between the start of the recording and our first context sees nobody but another new process.
TEST_F(ContainerTest, AnotherNewProcessIsNotTakenForOurs) {
  sample({});
  open();
  use_device();
  sample({kOther});
  sample({kOther});
  make_context({kOther, {kOurs.pid, 518 * kMiB}});
  sample({kOther});  // taken before the context, read after it
  sample({kOther, kOurs});
  finish();
  EXPECT_THAT(process_bytes_, Each(kNotIdentifiable));
  EXPECT_THAT(context_bytes_, ElementsAre(trace::kNone)) << "the other one's memory would be part of it";
}

// The process leaves the device, and lives on.
TEST_F(ContainerTest, TheOneThatStaysIsNotTakenForOurs) {
  sample({});
  open();
  make_context({kOther, kOurs});
  use_device();
  sample({kOther, kOurs});
  sample({kOther, kOurs});
  sample({kOther});
  finish();
  EXPECT_THAT(process_bytes_, Each(kNotIdentifiable));
}

TEST_F(ContainerTest, AProcessThatIsKnownStaysKnownWhenOthersCome) {
  sample({});
  open();
  make_context({kOurs});
  use_device();
  sample({kOurs});
  sample({kOurs});
  sample({kOurs, kOther});
  sample({kOther});
  finish();
  ASSERT_GE(process_bytes_.size(), 3u);
  EXPECT_THAT(std::vector(process_bytes_.end() - 3, process_bytes_.end()), ElementsAre(kOurs.bytes, kOurs.bytes, 0u));
}

// A late attach: the process was on the device when the recording began.
TEST_F(ContainerTest, AProcessThatWasThereBeforeIsNotTheNextThatComes) {
  sample({kOurs});
  open();
  make_context({kOurs});
  use_device();
  for (int i = 0; i < 4; ++i) sample({kOurs});
  sample({kOurs, kOther});
  finish();
  EXPECT_THAT(process_bytes_, Each(kNotIdentifiable));
  EXPECT_THAT(context_bytes_, ElementsAre(trace::kNone)) << "nobody saw the device without it";
}

}  // namespace
}  // namespace vramscope::collect
