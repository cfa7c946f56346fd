// For tests of the recorder. Each runs its body in a child process, because a process has one spool.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "record/options.h"
#include "record/recorder.h"

namespace vramscope::record {

namespace fs = std::filesystem;
using spool::RecordKind;

struct Recorded {
  spool::RecordHead head;
  std::uint32_t thread;
  std::uint64_t address;
  std::string text;  // of a string definition
};

struct Spool {
  std::vector<char> bytes;
  const spool::Header& header() const { return *reinterpret_cast<const spool::Header*>(bytes.data()); }
  std::uint64_t lost(spool::LossKind loss) const { return header().lost[static_cast<std::size_t>(loss)].load(); }

  std::vector<Recorded> records() const {
    std::vector<Recorded> found;
    for (std::uint32_t i = 0; i < header().segment_count.load(); ++i) {
      const char* segment = bytes.data() + spool::kHeaderBytes + i * spool::kSegmentBytes;
      const auto& head = *reinterpret_cast<const spool::SegmentHeader*>(segment);
      if (head.state.load() == spool::SegmentState::free) continue;
      for (std::uint32_t at = sizeof head; at < head.committed.load();) {
        const auto& record = *reinterpret_cast<const spool::RecordHead*>(segment + at);
        Recorded one{record, head.thread, 0, {}};
        if (record.kind == RecordKind::string) {
          const auto& text = *reinterpret_cast<const spool::StringRecord*>(&record);
          one.text.assign(reinterpret_cast<const char*>(&text + 1), text.bytes);
        } else if (record.kind == RecordKind::alloc || record.kind == RecordKind::free) {
          one.address = reinterpret_cast<const spool::FreeRecord*>(&record)->address;
        }
        found.push_back(one);
        at += record.slots * static_cast<std::uint32_t>(spool::kSlotBytes);
      }
    }
    return found;
  }
};

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("vramscope-recorder-test-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs `body` in a child process that records into the folder. Returns its exit code, or -signal.
  int run(const std::function<void()>& body, std::uint64_t limit = 64u << 20) {
    const pid_t child = fork();
    if (child == 0) {
      setenv(spool::kEnvSpool, folder_.c_str(), 1);
      setenv(spool::kEnvSpoolLimit, std::to_string(limit).c_str(), 1);
      read_environment();
      body();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::vector<Spool> spools() const {
    std::vector<Spool> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".spool") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      found.push_back({{std::istreambuf_iterator<char>(file), {}}});
    }
    return found;
  }

  fs::path folder_;
};

inline std::uint8_t test_pool() { return pool({1234, "pool", 0, Level::tensor, Memory::device, Framework::none}); }

inline void allocate(std::uint8_t pool, std::uint64_t address, std::uint64_t bytes = 256) {
  AllocEvent event;
  event.pool = pool;
  event.address = address;
  event.requested = event.granted = bytes;
  alloc(event);
}

inline void release(std::uint8_t pool, std::uint64_t address, std::uint64_t bytes = 256) {
  FreeEvent event;
  event.pool = pool;
  event.address = address;
  event.bytes = bytes;
  free(event);
}

inline std::set<std::uint64_t> numbers(const std::vector<Recorded>& records) {
  std::set<std::uint64_t> found;
  for (const auto& record : records)
    if (record.head.seq != 0) found.insert(record.head.seq);
  return found;
}

}  // namespace vramscope::record
