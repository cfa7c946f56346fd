// The recorder as the collector sees it: what is in the spool after something was recorded.
#include "record/recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "record/options.h"
#include "record/recorder_test.h"

namespace vramscope::record {
namespace {

TEST_F(RecorderTest, AProcessThatRecordsNothingLeavesNoFile) {
  EXPECT_EQ(run([] {}), 0);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RecorderTest, WithoutTheVariableNothingHappens) {
  const pid_t child = fork();
  if (child == 0) {
    unsetenv(spool::kEnvSpool);
    read_environment();
    allocate(test_pool(), 1);
    _exit(active() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RecorderTest, TotalsAndRecordsAgree) {
  EXPECT_EQ(run([] {
              const auto pool = test_pool();
              allocate(pool, 0x1000, 512);
              allocate(pool, 0x2000, 1024);
              release(pool, 0x1000, 512);
              allocate(pool, 0x3000, 256);
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  const auto& totals = found[0].header().pools[0];
  EXPECT_EQ(totals.allocs.load(), 3u);
  EXPECT_EQ(totals.frees.load(), 1u);
  EXPECT_EQ(totals.live_bytes.load(), 1280u);
  EXPECT_EQ(totals.peak_bytes.load(), 1536u);
  EXPECT_EQ(totals.largest_bytes.load(), 1024u);
  int allocs = 0;
  for (const auto& record : found[0].records()) allocs += record.head.kind == RecordKind::alloc ? 1 : 0;
  EXPECT_EQ(allocs, 3);
}

TEST_F(RecorderTest, AReportHoldsItsTextsAndNumbersInTheirOrder) {
  EXPECT_EQ(run([] {
              const char* const texts[] = {"überholt", nullptr, "/data/Größe.py"};
              const std::uint64_t numbers[] = {17, ~std::uint64_t{0}};
              report(18, texts, numbers);  // retrace
              report(3, texts, numbers);   // an event that is not reported
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  std::map<std::uint32_t, std::string> texts = {{0, ""}};
  std::vector<spool::ReportRecord> reports;
  for (std::uint32_t i = 0; i < found[0].header().segment_count.load(); ++i) {
    const char* segment = found[0].bytes.data() + spool::kHeaderBytes + i * spool::kSegmentBytes;
    const auto& head = *reinterpret_cast<const spool::SegmentHeader*>(segment);
    for (std::uint32_t at = sizeof head; at < head.committed.load();) {
      const auto& record = *reinterpret_cast<const spool::RecordHead*>(segment + at);
      if (record.kind == RecordKind::report) reports.push_back(*reinterpret_cast<const spool::ReportRecord*>(&record));
      if (record.kind == RecordKind::string) {
        const auto& text = *reinterpret_cast<const spool::StringRecord*>(&record);
        texts[text.id].assign(reinterpret_cast<const char*>(&text + 1), text.bytes);
      }
      at += record.slots * static_cast<std::uint32_t>(spool::kSlotBytes);
    }
  }
  ASSERT_EQ(reports.size(), 1u);
  const spool::ReportRecord& one = reports[0];
  EXPECT_EQ(one.head.small, 18);
  EXPECT_NE(one.head.seq, 0u);
  EXPECT_EQ(texts.at(one.text[0]), "überholt");
  EXPECT_EQ(texts.at(one.text[1]), "");
  EXPECT_EQ(texts.at(one.text[2]), "/data/Größe.py");
  EXPECT_EQ(one.text[3], 0u);
  EXPECT_EQ(one.number[0], 17u);
  EXPECT_EQ(one.number[1], ~std::uint64_t{0});
  EXPECT_EQ(one.number[2], 0u);
}

// Two threads come to a new pool at once and ask its allocator what is in use: the slower one gets what the faster one
// allocated.
TEST_F(RecorderTest, OnlyWhoCreatesAPoolSaysWhatWasInUseBefore) {
  EXPECT_EQ(run([] {
              PoolKey key{1234, "pool", 0, Level::tensor, Memory::device, Framework::none, spool::kPoolOrderExact, 4096, 100};
              allocate(pool(key), 0x1000, 512);
              key.before_bytes = 612;
              key.flags |= spool::kPoolSeenLate;
              allocate(pool(key), 0x2000, 1024);
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  const auto& totals = found[0].header().pools[0];
  EXPECT_EQ(totals.before_bytes.load(), 100u);
  EXPECT_EQ(totals.live_bytes.load(), 100u + 512 + 1024);
  EXPECT_EQ(totals.peak_bytes.load(), 100u + 512 + 1024);
  EXPECT_EQ(totals.limit_bytes.load(), 4096u);
  EXPECT_EQ(totals.flags.load(), spool::kPoolOrderExact);
}

TEST_F(RecorderTest, EightThreadsNumberTheirEventsWithoutGapOrRepeat) {
  constexpr std::size_t kThreads = 8, kEach = 20'000;
  EXPECT_EQ(run([] {
              std::vector<std::thread> threads;
              threads.reserve(kThreads);
              for (std::size_t t = 0; t < kThreads; ++t)
                threads.emplace_back([t] {
                  const auto pool = test_pool();
                  for (std::size_t i = 0; i < kEach; ++i) allocate(pool, (t << 32) + i);
                });
              for (auto& thread : threads) thread.join();
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  const auto records = found[0].records();
  const auto seqs = numbers(records);
  EXPECT_EQ(seqs.size(), *seqs.rbegin());
  std::set<std::uint64_t> addresses;
  std::set<std::uint32_t> threads;
  for (const auto& record : records)
    if (record.head.kind == RecordKind::alloc) {
      addresses.insert(record.address);
      threads.insert(record.thread);
    }
  EXPECT_EQ(addresses.size(), kThreads * kEach);
  EXPECT_EQ(threads.size(), kThreads);
  EXPECT_EQ(found[0].header().pool_count.load(), 1u);
  EXPECT_EQ(found[0].header().pools[0].live_bytes.load(), kThreads * kEach * 256);
}

TEST_F(RecorderTest, AForkedChildHasASpoolOfItsOwnAndDefinesItsNames) {
  EXPECT_EQ(run([] {
              const auto pool = test_pool();
              const auto name = intern("the same name");
              allocate(pool, name);
              // Not through libc: no handler of ours could have run.
              const long child = syscall(SYS_fork);
              allocate(test_pool(), child == 0 ? 0xc41d : 0xaaaa);
              intern("the same name");
              if (child == 0) _exit(0);
              waitpid(static_cast<pid_t>(child), nullptr, 0);
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 2u);
  for (const auto& spool : found) {
    bool child = false, parent = false, named = false;
    for (const auto& record : spool.records()) {
      child |= record.address == 0xc41d;
      parent |= record.address == 0xaaaa;
      named |= record.text == "the same name";
    }
    EXPECT_NE(child, parent);
    EXPECT_TRUE(named);
    EXPECT_EQ(spool.header().pool_count.load(), 1u);
  }
}

TEST_F(RecorderTest, AnEventInsideASignalHandlerIsCountedNotDeadlocked) {
  EXPECT_EQ(run([] {
              const auto pool = test_pool();
              static std::uint8_t shared;
              shared = pool;
              signal(SIGUSR1, [](int) { allocate(shared, 0x51); });
              enter();
              raise(SIGUSR1);
              leave();
              raise(SIGUSR1);
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].lost(spool::LossKind::reentered), 1u);
  EXPECT_EQ(numbers(found[0].records()).size(), 1u);
}

TEST_F(RecorderTest, LongAndOddNamesAreKeptWholeUpToTheirLimit) {
  const std::string odd = "a\"b\\c\n\x01\xff<script>";
  const std::string huge(100'000, 'x');
  EXPECT_EQ(run([&] {
              intern(odd.data(), odd.size());
              intern(huge.data(), huge.size());
            }),
            0);
  const auto found = spools();
  ASSERT_EQ(found.size(), 1u);
  std::set<std::string> texts;
  for (const auto& record : found[0].records()) texts.insert(record.text);
  EXPECT_TRUE(texts.contains(odd));
  EXPECT_TRUE(texts.contains(huge.substr(0, 8192)));
}

TEST_F(RecorderTest, ManyNamesGetDifferentIds) {
  constexpr int kNames = 50'000;
  EXPECT_EQ(run([] {
              std::set<std::uint32_t> ids;
              for (int i = 0; i < kNames; ++i) ids.insert(intern(("name " + std::to_string(i)).c_str()));
              for (int i = 0; i < kNames; i += 997)
                if (!ids.contains(intern(("name " + std::to_string(i)).c_str()))) _exit(1);
              _exit(ids.size() == kNames && !ids.contains(0) ? 0 : 2);
            }),
            0);
}

TEST_F(RecorderTest, AFolderThatCannotBeWrittenTurnsRecordingOffAndTheProgramGoesOn) {
  folder_ /= "missing";
  EXPECT_EQ(run([] {
              allocate(test_pool(), 1);
              _exit(active() ? 1 : 0);
            }),
            0);
}

TEST_F(RecorderTest, TheCollectorCanStopTheRecording) {
  EXPECT_EQ(run([&] {
              const auto pool = test_pool();
              allocate(pool, 1);
              for (const auto& entry : fs::directory_iterator(folder_)) {
                if (entry.path().extension() != ".spool") continue;
                const int file = open(entry.path().c_str(), O_RDWR);
                void* map = mmap(nullptr, spool::kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                static_cast<spool::Header*>(map)->stop.store(1);
              }
              allocate(pool, 2);
              _exit(active() ? 1 : 0);
            }),
            0);
  EXPECT_EQ(numbers(spools().at(0).records()).size(), 1u);
}

}  // namespace
}  // namespace vramscope::record
