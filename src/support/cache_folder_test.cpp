#include "support/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

namespace vramscope::support {
namespace {

namespace fs = std::filesystem;

class CacheFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vramscope-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static bool put(const CacheFolder& cache, const std::string& name, std::size_t bytes) {
    return cache.publish(name, [&](int fd) { return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0; });
  }
  std::size_t files(const fs::path& where) const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(where), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(CacheFolderTest, IsMadeForTheUserAlone) {
  auto cache = CacheFolder::open(folder_ / "a" / "vramscope");
  ASSERT_TRUE(cache);
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "a" / "vramscope").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_TRUE(put(*cache, "x.index", 10));
  ASSERT_EQ(::stat((folder_ / "a" / "vramscope" / "x.index").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(files(folder_ / "a" / "vramscope"), 1u);  // no temporary file is left
}

TEST_F(CacheFolderTest, ClosesAnOpenFolder) {
  fs::create_directory(folder_ / "v");
  ASSERT_EQ(::chmod((folder_ / "v").c_str(), 0755), 0);
  ASSERT_TRUE(CacheFolder::open(folder_ / "v"));
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "v").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(CacheFolderTest, FollowsNoLink) {
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "v");
  EXPECT_FALSE(CacheFolder::open(folder_ / "v"));
  auto cache = CacheFolder::open(folder_ / "w");
  ASSERT_TRUE(cache);
  std::ofstream(folder_ / "mine") << "precious";
  fs::create_symlink(folder_ / "mine", folder_ / "w" / "x.index");
  EXPECT_FALSE(cache->read("x.index"));
  EXPECT_TRUE(put(*cache, "x.index", 3));  // takes the link's place, not that of the file behind it
  EXPECT_EQ(fs::file_size(folder_ / "mine"), 8u);
  EXPECT_TRUE(cache->read("x.index"));
}

TEST_F(CacheFolderTest, WaitsForNoPipe) {
  auto cache = CacheFolder::open(folder_ / "v");
  ASSERT_TRUE(cache);
  ASSERT_EQ(::mkfifo((folder_ / "v" / "x.index").c_str(), 0600), 0);
  EXPECT_FALSE(cache->read("x.index"));
}

TEST_F(CacheFolderTest, WhatIsNotWrittenDoesNotAppear) {
  auto cache = CacheFolder::open(folder_ / "v");
  ASSERT_TRUE(cache);
  EXPECT_FALSE(cache->publish("x.index", [](int) { return false; }));
  EXPECT_EQ(files(folder_ / "v"), 0u);
}

TEST_F(CacheFolderTest, DropsWhatWasUsedLongestAgo) {
  auto cache = CacheFolder::open(folder_ / "v");
  ASSERT_TRUE(cache);
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    const std::string name = std::to_string(i) + ".index";
    ASSERT_TRUE(put(*cache, name, 1000));
    fs::last_write_time(folder_ / "v" / name, now - std::chrono::hours(10 - i));
  }
  ASSERT_TRUE(put(*cache, "key", 5000));
  CacheFolder::touch(cache->read("0.index").get());
  cache->trim(".index", 2500);
  EXPECT_TRUE(cache->read("0.index"));
  EXPECT_FALSE(cache->read("1.index"));
  EXPECT_FALSE(cache->read("2.index"));
  EXPECT_TRUE(cache->read("3.index"));
  EXPECT_TRUE(cache->read("key"));
}

TEST_F(CacheFolderTest, NothingIsMadeInAFolderOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  ASSERT_EQ(::chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(CacheFolder::open(folder_ / "v"));
  EXPECT_EQ(files(folder_), 0u);
  fs::create_directory(folder_ / "theirs");
  ASSERT_EQ(::chown((folder_ / "theirs").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(CacheFolder::open(folder_ / "theirs"));
}

}  // namespace
}  // namespace vramscope::support
