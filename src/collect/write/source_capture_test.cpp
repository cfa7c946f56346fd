#include "collect/write/source_capture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "trace/reader.h"

namespace vramscope::collect {

namespace {

namespace fs = std::filesystem;
using trace::SourceState;

constexpr std::uint64_t kLongAgo = 1;
constexpr std::uint64_t kFarAhead = 4'000'000'000'000'000;

class SourceCaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("vramscope-capture-{}", getpid());
    fs::create_directories(folder_);
    auto writer = trace::Writer::create(folder_ / "t.vram", {});
    ASSERT_TRUE(writer);
    writer_.emplace(std::move(*writer));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, int lines) {
    std::ofstream out(folder_ / name);
    for (int i = 1; i <= lines; ++i) out << "line " << i << "\r\n";
    return (folder_ / name).string();
  }
  void read() {
    ASSERT_TRUE(writer_->finish());
    auto reader = trace::Reader::open(folder_ / "t.vram");
    ASSERT_TRUE(reader);
    reader_.emplace(std::move(*reader));
  }
  const std::string& text(trace::StringId id) const { return reader_->dictionaries().strings.at(static_cast<std::size_t>(id)); }
  std::map<std::uint64_t, std::string> lines_of(const std::string& path) const {
    std::map<std::uint64_t, std::string> out;
    for (const auto& line : reader_->dictionaries().source_lines)
      if (text(line.file) == path) out[line.line] = text(line.text);
    return out;
  }
  std::optional<SourceState> state_of(const std::string& path) const {
    std::optional<SourceState> state;
    for (const auto& each : reader_->dictionaries().source_files)
      if (text(each.file) == path) state = each.state;
    return state;
  }

  fs::path folder_;
  std::optional<trace::Writer> writer_;
  std::optional<trace::Reader> reader_;
};

TEST_F(SourceCaptureTest, KeepsTheLinesAroundEachLocationOnce) {
  SourceCapture capture(geteuid(), kFarAhead, {.context = 2});
  const std::string path = file("train.py", 100);
  capture.see(path, 50);
  capture.write_to(*writer_, false);
  capture.see(path, 50);
  capture.see(path, 53);
  capture.see(path, 1);
  capture.see(path, 1000);
  capture.see("<stdin>", 3);
  capture.write_to(*writer_, false);
  read();
  const auto lines = lines_of(path);
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, line] : lines) {
    numbers.push_back(number);
    EXPECT_EQ(line, fmt::format("line {}", number));
  }
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2, 3, 48, 49, 50, 51, 52, 53, 54, 55}));
  EXPECT_EQ(reader_->dictionaries().source_lines.size(), numbers.size());
  EXPECT_EQ(state_of(path), SourceState::kept);
  EXPECT_EQ(reader_->dictionaries().source_files.size(), 1U);
}

TEST_F(SourceCaptureTest, TakesOnlyPythonSourceFromRegularFiles) {
  SourceCapture capture(geteuid(), kFarAhead);
  std::ofstream(folder_ / "notes") << "text\n";
  std::ofstream(folder_ / "script") << "#!/usr/bin/env python3\nx = 1\n";
  std::ofstream(folder_ / "binary.py") << std::string("a\0b", 3);
  ASSERT_EQ(mkfifo((folder_ / "fifo.py").c_str(), 0600), 0);
  fs::create_symlink("/etc/passwd", folder_ / "link.py");
  const std::vector<std::string> refused = {(folder_ / "notes").string(),
                                            (folder_ / "link.py").string(),
                                            (folder_ / "binary.py").string(),
                                            (folder_ / "fifo.py").string(),
                                            "/proc/self/environ",
                                            "/proc/kmsg",
                                            "/etc/passwd"};
  for (const std::string& path : refused) capture.see(path, 1);
  capture.see((folder_ / "script").string(), 2);
  capture.see((folder_ / "absent.py").string(), 2);
  capture.write_to(*writer_, true);
  read();
  for (const std::string& path : refused) {
    EXPECT_TRUE(lines_of(path).empty()) << path;
    EXPECT_EQ(state_of(path), SourceState::not_source) << path;
  }
  EXPECT_EQ(lines_of((folder_ / "script").string()).size(), 2U);
  EXPECT_EQ(state_of((folder_ / "absent.py").string()), SourceState::missing);
}

// The program of another user names a file that only the collector may read.
TEST_F(SourceCaptureTest, WithholdsFilesOfOtherUsersThatAreNotForEverybody) {
  SourceCapture capture(geteuid() + 1, kFarAhead);
  const std::string secret = file("private.py", 3);
  const std::string open = file("public.py", 3);
  chmod(secret.c_str(), 0600);
  chmod(open.c_str(), 0644);
  capture.see(secret, 1);
  capture.see(open, 1);
  capture.write_to(*writer_, true);
  read();
  EXPECT_TRUE(lines_of(secret).empty());
  EXPECT_EQ(state_of(secret), SourceState::withheld);
  EXPECT_EQ(lines_of(open).size(), 3U);
}

TEST_F(SourceCaptureTest, SaysWhenAFileWasWrittenAfterTheStart) {
  SourceCapture capture(geteuid(), kLongAgo);
  const std::string path = file("train.py", 3);
  capture.see(path, 1);
  capture.write_to(*writer_, true);
  read();
  EXPECT_EQ(state_of(path), SourceState::changed);
  EXPECT_EQ(lines_of(path).size(), 3U);
}

TEST_F(SourceCaptureTest, DoesNotMixTwoVersionsOfAFile) {
  SourceCapture capture(geteuid(), kFarAhead, {.context = 1});
  const std::string path = file("train.py", 100);
  capture.see(path, 10);
  capture.write_to(*writer_, false);
  file("train.py", 90);
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  capture.see(path, 60);
  capture.write_to(*writer_, false);
  read();
  EXPECT_EQ(lines_of(path).size(), 3U);
  EXPECT_EQ(state_of(path), SourceState::changed);
}

TEST_F(SourceCaptureTest, StaysWithinItsLimitsAndPutsTheUsersFilesFirst) {
  SourceCapture capture(geteuid(), kFarAhead,
                        {.context = 500, .installed_context = 500, .text_bytes = 4000, .installed_text_bytes = 1000});
  fs::create_directories(folder_ / "site-packages");
  const std::string own = file("train.py", 1000);
  const std::string installed = file("site-packages/a.py", 1000);
  capture.see(installed, 500);
  capture.see(own, 500);
  capture.write_to(*writer_, true);
  read();
  std::size_t own_bytes = 0, installed_bytes = 0;
  for (const auto& [number, line] : lines_of(own)) own_bytes += line.size();
  for (const auto& [number, line] : lines_of(installed)) installed_bytes += line.size();
  EXPECT_GT(own_bytes, 1000U);
  EXPECT_LE(installed_bytes, 1000U);
  EXPECT_LE(own_bytes + installed_bytes, 4000U);
  EXPECT_EQ(state_of(own), SourceState::limit);
  EXPECT_EQ(state_of(installed), SourceState::limit);
}

TEST_F(SourceCaptureTest, CutsLongLinesBetweenCharacters) {
  SourceCapture capture(geteuid(), kFarAhead, {.line_bytes = 4});
  std::ofstream(folder_ / "long.py") << "abc\xc3\xa4"
                                        "def\n";
  capture.see((folder_ / "long.py").string(), 1);
  capture.write_to(*writer_, true);
  read();
  EXPECT_EQ(lines_of((folder_ / "long.py").string())[1], "abc");
}

TEST(SourceCaptureAnonymous, LeavesNothing) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("vramscope-capture-anonymous-{}", getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "train.py") << "secret = 1\n";
  {
    auto writer = trace::Writer::create(folder / "t.vram", {.anonymize = trace::random_key()});
    ASSERT_TRUE(writer);
    SourceCapture capture(geteuid(), kFarAhead);
    capture.see((folder / "train.py").string(), 1);
    capture.write_to(*writer, true);
    ASSERT_TRUE(writer->finish());
  }
  const auto reader = trace::Reader::open(folder / "t.vram");
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->dictionaries().source_lines.empty());
  EXPECT_TRUE(reader->dictionaries().source_files.empty());
  for (const std::string& text : reader->dictionaries().strings) EXPECT_EQ(text.find("secret"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace

}  // namespace vramscope::collect
