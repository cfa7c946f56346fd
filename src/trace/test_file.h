// A trace file of its own for each test.
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
