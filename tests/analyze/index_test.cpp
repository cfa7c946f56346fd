// The index of a trace: where it is kept, when it is used, and that only our own files are trusted.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "ask_everything.h"
#include "trace/reader.h"
#include "training.h"

namespace vramscope {
namespace {

using namespace analyze;
namespace fs = std::filesystem;

class IndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vs-index-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "traces" / "run.vram";
    cache_ = folder_ / "cache";
    fs::create_directory(folder_ / "traces");
    tracegen::Training t;
    t.leak_bytes = 4096;
    t.steps = 60;
    t.maker.pool.limit = 24u << 20;
    ASSERT_TRUE(tracegen::write_training(path_, t));
    options_.cache = cache_;
    options_.index_after_s = 0;
    OpenOptions plain;
    plain.keep_index = false;
    truth_ = test::ask_everything(Engine::open(path_, plain).value());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string answers() const { return test::ask_everything(Engine::open(path_, options_).value()); }
  std::vector<fs::path> indexes() const {
    std::vector<fs::path> out;
    if (fs::exists(cache_))
      for (const auto& entry : fs::directory_iterator(cache_))
        if (entry.path().extension() == ".index") out.push_back(entry.path());
    return out;
  }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void flip(const fs::path& path, std::uint64_t at, char bits) {
    std::string bytes = content(path);
    bytes[at] = static_cast<char>(bytes[at] ^ bits);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static ino_t inode(const fs::path& path) {
    struct stat info{};
    ::stat(path.c_str(), &info);
    return info.st_ino;
  }

  fs::path folder_, path_, cache_;
  OpenOptions options_;
  std::string truth_;
};

TEST_F(IndexTest, IsKeptInTheCacheAndAnswersTheSame) {
  EXPECT_TRUE(answers() == truth_);
  ASSERT_EQ(indexes().size(), 1u);
  const auto before = inode(indexes()[0]);
  EXPECT_TRUE(answers() == truth_);
  EXPECT_EQ(inode(indexes()[0]), before);  // used as it is
  // Nothing beside the trace.
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), fs::directory_iterator()), 1);
}

TEST_F(IndexTest, IsNotKeptForWhatOpensAtOnce) {
  options_.index_after_s = 3600;
  EXPECT_TRUE(answers() == truth_);
  EXPECT_TRUE(indexes().empty());
}

TEST_F(IndexTest, AnyChangedByteMakesItBuiltAgain) {
  ASSERT_TRUE(answers() == truth_);
  const fs::path index = indexes()[0];
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    flip(index, random() % fs::file_size(index), static_cast<char>(1 << random() % 8));
    const std::string changed = content(index);
    ASSERT_TRUE(answers() == truth_);
    ASSERT_TRUE(content(index) != changed) << "not built again";
  }
  for (std::uint64_t size : {std::uint64_t{0}, std::uint64_t{50}, fs::file_size(index) / 2}) {
    fs::resize_file(index, size);
    ASSERT_TRUE(answers() == truth_);
  }
}

TEST_F(IndexTest, OfAnotherUserIsNotUsed) {
  ASSERT_TRUE(answers() == truth_);
  const fs::path theirs = indexes()[0];
  flip(cache_ / "key", 17, 1);
  EXPECT_TRUE(answers() == truth_);  // the key is part of the name, too
  ASSERT_EQ(indexes().size(), 2u);
  const fs::path own = indexes()[indexes()[0] == theirs ? 1 : 0];
  fs::copy_file(theirs, own, fs::copy_options::overwrite_existing);  // sealed with another key
  EXPECT_TRUE(answers() == truth_);
  EXPECT_TRUE(content(own) != content(theirs));
}

// In the two files, every checksum of the format is the same, and one block has another size.
TEST_F(IndexTest, OfATraceWithTheSameChecksumsIsNotUsed) {
  const fs::path colliding = fs::path(VS_TRACES) / "colliding";
  const auto peak = [&](const char* name) { return Engine::open(colliding / name, options_).value().places()[0].peak; };
  EXPECT_EQ(peak("a.vram"), 16u * 1000);
  EXPECT_EQ(peak("b.vram"), 16u * 77'777'000);
  EXPECT_EQ(indexes().size(), 2u);
}

TEST_F(IndexTest, TheContentOfATraceHasANameOnlyWithAKey) {
  EXPECT_FALSE(trace::Reader::open(path_).value().content());
  support::ChecksumKey one{}, other{};
  other[100] = 1;
  const auto name = trace::Reader::open(path_, one).value().content();
  EXPECT_EQ(name, trace::Reader::open(path_, one).value().content());
  EXPECT_NE(name, trace::Reader::open(path_, other).value().content());
}

TEST_F(IndexTest, OfADamagedCopyIsNotThatOfTheTrace) {
  ASSERT_TRUE(answers() == truth_);
  // A changed head of a block does no harm, the footer has a copy; a changed payload does.
  for (std::uint64_t at = fs::file_size(path_) / 2; trace::Reader::open(path_).value().damage().message.empty(); at += 16)
    flip(path_, at, 1);
  const std::string damaged = answers();
  EXPECT_TRUE(damaged != truth_);
  options_.keep_index = false;
  EXPECT_TRUE(answers() == damaged);
}

TEST_F(IndexTest, LinksAndPipesInItsPlaceAreNotFollowed) {
  ASSERT_TRUE(answers() == truth_);
  const fs::path index = indexes()[0];
  fs::remove(index);
  std::ofstream(folder_ / "mine") << "precious";
  fs::create_symlink(folder_ / "mine", index);
  EXPECT_TRUE(answers() == truth_);
  EXPECT_EQ(fs::file_size(folder_ / "mine"), 8u);
  fs::remove(index);
  ASSERT_EQ(::mkfifo(index.c_str(), 0600), 0);
  EXPECT_TRUE(answers() == truth_);
}

TEST_F(IndexTest, WorksWithoutACache) {
  options_.cache = "/proc/nowhere/vramscope";
  EXPECT_TRUE(answers() == truth_);
}

TEST_F(IndexTest, LinksBesideTheTraceAreLeftAlone) {
  std::ofstream(folder_ / "mine") << "precious";
  fs::create_symlink(folder_ / "mine", fs::path(path_) += ".index");
  fs::create_symlink(folder_ / "mine", fs::path(path_) += ".index." + std::to_string(::getpid()) + ".tmp");
  EXPECT_TRUE(answers() == truth_);
  EXPECT_EQ(fs::file_size(folder_ / "mine"), 8u);
}

}  // namespace
}  // namespace vramscope
