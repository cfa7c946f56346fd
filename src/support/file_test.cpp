#include "support/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "support/owned_folder.h"

namespace vramscope::support {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A pipe stands for every file that is changed by being opened: a watchdog, a tape. The kernel reports who opens it.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(place_);
    ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
    fs::create_symlink(pipe_, place_ / "link");
    events_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(events_, pipe_.c_str(), IN_OPEN), 0);
  }
  void TearDown() override {
    close(events_);
    fs::remove_all(place_);
  }

  bool was_opened() const {
    std::array<char, 4096> buffer{};
    return read(events_, buffer.data(), buffer.size()) > 0;
  }

  fs::path place_ = fs::temp_directory_path() / ("vramscope-test-" + random_name());
  fs::path pipe_ = place_ / "pipe";
  int events_ = -1;
};

TEST_F(FileTest, WhatIsNoFileIsNotEvenOpened) {
  for (const fs::path& path : {pipe_, place_ / "link"}) {
    const auto file = ReadFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().message, HasSubstr("not a regular file"));
    EXPECT_LT(open_regular_file(path), 0);
    EXPECT_LT(open_own_file(path, O_RDWR), 0);
    EXPECT_FALSE(was_opened()) << path;
  }
  const int fd = open(pipe_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_TRUE(was_opened()) << "the test can fail";
  close(fd);
}

TEST_F(FileTest, SaysWhatItCannotOpen) {
  EXPECT_THAT(ReadFile::open(place_).error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(ReadFile::open(place_ / "absent").error().message, HasSubstr("No such file"));
  std::ofstream(place_ / "file") << "text";
  fs::create_symlink("file", place_ / "to-file");
  for (const char* name : {"file", "to-file"}) {
    const auto file = ReadFile::open(place_ / name);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->size(), 4u);
  }
}

}  // namespace
}  // namespace vramscope::support
