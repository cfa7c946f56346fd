// A separate trace file for each test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "trace/reader.h"
#include "trace/writer.h"

namespace vramscope::trace {

inline bool same_events(const Chunk& a, const Chunk& b) {
  bool same = a.kind == b.kind && a.seq == b.seq && a.time_us == b.time_us && a.thread == b.thread;
  for_each_table(a.tables, [&]<typename Table>(EventKind, const Table& mine) {
    for_each_table(b.tables, [&]<typename Other>(EventKind, const Other& theirs) {
      if constexpr (std::is_same_v<Table, Other>) {
        same = same && mine.size() == theirs.size();
        for (std::size_t i = 0; same && i < mine.size(); ++i) same = mine.row(i) == theirs.row(i);
      }
    });
  });
  return same;
}

class TestFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("vramscope-" + std::to_string(::getpid()) + "-" + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    path_ = folder_ / "a.vram";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Writer create(WriterOptions options = {}) {
    auto writer = Writer::create(path_, options);
    EXPECT_TRUE(writer) << writer.error().message;
    return std::move(*writer);
  }
  Reader open() {
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader) << reader.error().message;
    return std::move(*reader);
  }

  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_bytes(std::string_view bytes) const {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace vramscope::trace
