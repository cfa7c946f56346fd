// The trace that a test writes and then asks about.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include <fmt/format.h>

#include "analyze/api.h"
#include "maker.h"

namespace vramscope::test {

inline constexpr std::uint64_t kMiB = 1u << 20;

// Where a trace is written; it is removed with the test.
class TracePath {
 public:
  TracePath() : path_(std::filesystem::temp_directory_path() / fmt::format("vs-test-{}-{}.vram", ::getpid(), ++count_)) {}
  TracePath(const TracePath&) = delete;
  TracePath& operator=(const TracePath&) = delete;
  ~TracePath() { clear(); }

  void clear() const { std::filesystem::remove(path_); }
  operator const std::filesystem::path&() const { return path_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

// Never with the index of an earlier trace.
inline analyze::Engine opened(const std::filesystem::path& trace) {
  return analyze::Engine::open(trace, {.keep_index = false}).value();
}

class TraceTest : public ::testing::Test {
 protected:
  // A trace in the place of the one before.
  tracegen::Maker new_trace(const tracegen::Maker::Options& options = {}) const {
    path_.clear();
    return tracegen::Maker::create(path_, options).value();
  }
  analyze::Engine opened() const { return test::opened(path_); }

  const TracePath path_;
};

}  // namespace vramscope::test
