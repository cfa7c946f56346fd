#include "support/plain_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace vramscope::support {

namespace {

namespace fs = std::filesystem;

class PlainFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("vramscope-plain-{}", getpid());
    fs::create_directories(folder_ / "root/inner");
    write(folder_ / "secret.py", "secret");
    write(folder_ / "root/inner/train.py", "one\ntwo\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }
  SourceRoot root() const {
    auto opened = SourceRoot::open(folder_ / "root");
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }

  fs::path folder_;
};

PlainFault fault(const PlainResult& result) {
  EXPECT_FALSE(result);
  return result ? PlainFault{99} : result.error();
}

TEST_F(PlainFileTest, ReadsARegularFile) {
  const auto file = read_plain_file((folder_ / "root/inner/train.py").string(), 100);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes, "one\ntwo\n");
  EXPECT_EQ(file->owner, geteuid());
  EXPECT_GT(file->written_us, 1'600'000'000'000'000U);
}

TEST_F(PlainFileTest, RefusesWhatOnlyLooksLikeAFile) {
  ASSERT_EQ(mkfifo((folder_ / "fifo.py").c_str(), 0600), 0);
  EXPECT_EQ(fault(read_plain_file((folder_ / "fifo.py").string(), 100)), PlainFault::not_regular);
  EXPECT_EQ(fault(read_plain_file(folder_.string(), 100)), PlainFault::not_regular);
  EXPECT_EQ(fault(read_plain_file("/dev/zero", 100)), PlainFault::not_regular);
  EXPECT_EQ(fault(read_plain_file("/proc/self/environ", 100)), PlainFault::not_regular);
  EXPECT_EQ(fault(read_plain_file("/proc/version", 1000)), PlainFault::not_regular);
  EXPECT_EQ(fault(read_plain_file((folder_ / "absent.py").string(), 100)), PlainFault::missing);
  EXPECT_EQ(fault(read_plain_file((folder_ / "secret.py").string(), 3)), PlainFault::too_large);
}

TEST_F(PlainFileTest, NothingLeadsOutOfARoot) {
  fs::create_symlink(folder_ / "secret.py", folder_ / "root/link.py");
  fs::create_directory_symlink(folder_, folder_ / "root/up");
  fs::create_symlink("inner/train.py", folder_ / "root/near.py");
  ASSERT_EQ(mkfifo((folder_ / "root/fifo.py").c_str(), 0600), 0);
  const SourceRoot root = this->root();
  ASSERT_TRUE(root.read("inner/train.py", 100));
  ASSERT_TRUE(root.read("/inner//train.py", 100));
  for (const char* path : {"link.py", "near.py", "up/secret.py", "../secret.py", "inner/../../secret.py", "./inner/train.py", "",
                           "/", "inner", "fifo.py", "absent.py"})
    EXPECT_FALSE(root.read(path, 100)) << path;
  EXPECT_FALSE(root.read(std::string_view("inner\0/train.py", 15), 100));
}

TEST_F(PlainFileTest, ARootMustBeAFolder) {
  EXPECT_FALSE(SourceRoot::open(folder_ / "secret.py"));
  EXPECT_FALSE(SourceRoot::open(folder_ / "absent"));
  fs::create_directory_symlink(folder_ / "root", folder_ / "alias");
  const auto alias = SourceRoot::open(folder_ / "alias");  // named by the viewer: followed
  ASSERT_TRUE(alias);
  EXPECT_TRUE(alias->read("inner/train.py", 100));
}

TEST_F(PlainFileTest, KernelFilesAreNotShownEvenBelowARoot) {
  const auto proc = SourceRoot::open("/proc");
  ASSERT_TRUE(proc);
  EXPECT_FALSE(proc->read("self/environ", 1000));
  EXPECT_FALSE(proc->read("version", 1000));
  EXPECT_FALSE(proc->read("kmsg", 1000));
}

}  // namespace

}  // namespace vramscope::support
