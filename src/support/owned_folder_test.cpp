#include "support/owned_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/file.h"

namespace vramscope::support {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OwnedFolderTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(place_); }
  void TearDown() override { fs::remove_all(place_); }

  static void write(const fs::path& path, const char* text) { std::ofstream(path) << text; }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static bool everything(std::string_view) { return true; }

  fs::path place_ = fs::temp_directory_path() / ("vramscope-test-" + random_name());
};

TEST_F(OwnedFolderTest, IsNewAndPrivateAndKnownAgain) {
  const auto made = OwnedFolder::create(place_, "mine-");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(fs::status(made->path()).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(OwnedFolder::open(made->path()));
  EXPECT_NE(OwnedFolder::create(place_, "mine-")->path(), made->path());
}

TEST_F(OwnedFolderTest, OthersAreNotTakenForOurs) {
  const fs::path plain = place_ / "plain";
  fs::create_directory(plain);
  fs::permissions(plain, fs::perms::owner_all);
  const auto open = [](const fs::path& path) { return OwnedFolder::open(path); };
  EXPECT_THAT(open(plain).error().message, HasSubstr("did not create"));
  fs::create_symlink("elsewhere", plain / OwnedFolder::kMarker);
  EXPECT_THAT(open(plain).error().message, HasSubstr("did not create")) << "a link is no marker";
  const auto made = OwnedFolder::create(place_, "mine-");
  fs::create_directory_symlink(made->path(), place_ / "link");
  EXPECT_FALSE(open(place_ / "link")) << "a link to one of ours is not ours";
  fs::permissions(made->path(), fs::perms::all);
  EXPECT_THAT(open(made->path()).error().message, HasSubstr("other users"));
  fs::permissions(made->path(), fs::perms::owner_all);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(made->path().c_str(), 65534, 65534), 0);
    EXPECT_THAT(open(made->path()).error().message, HasSubstr("another user"));
  }
}

TEST_F(OwnedFolderTest, RemovesWhatItKnowsAndNothingBehindLinks) {
  const auto made = OwnedFolder::create(place_, "mine-");
  const fs::path outside = place_ / "outside";
  fs::create_directory(outside);
  write(outside / "precious", "mine");
  write(made->path() / "a.spool", "x");
  fs::create_directory_symlink(outside, made->path() / "b.spool");
  fs::create_directory(made->path() / "c.spool");
  write(made->path() / "c.spool" / "inner", "x");
  write(made->path() / "notes", "x");
  EXPECT_FALSE(made->remove([](std::string_view name) { return name.ends_with(".spool"); }));
  EXPECT_FALSE(fs::exists(fs::symlink_status(made->path() / "a.spool")));
  EXPECT_FALSE(fs::exists(fs::symlink_status(made->path() / "b.spool")));
  EXPECT_TRUE(fs::exists(made->path() / "c.spool" / "inner")) << "folders are never entered";
  EXPECT_TRUE(fs::exists(made->path() / "notes"));
  EXPECT_TRUE(fs::exists(made->path() / OwnedFolder::kMarker)) << "it stays recognizable";
  EXPECT_EQ(read(outside / "precious"), "mine");
}

TEST_F(OwnedFolderTest, GoesWhenNothingElseIsInIt) {
  const auto made = OwnedFolder::create(place_, "mine-");
  write(made->path() / "a", "x");
  EXPECT_TRUE(made->remove(everything));
  EXPECT_FALSE(fs::exists(made->path()));
}

TEST_F(OwnedFolderTest, AFolderThatTookItsNameStays) {
  const auto made = OwnedFolder::create(place_, "mine-");
  fs::rename(made->path(), place_ / "moved");
  fs::create_directory(made->path());
  write(made->path() / "precious", "mine");
  EXPECT_FALSE(made->remove(everything));
  EXPECT_EQ(read(made->path() / "precious"), "mine");
}

TEST_F(OwnedFolderTest, OnlyRegularFilesOfOursAreOpened) {
  write(place_ / "file", "x");
  fs::create_symlink(place_ / "file", place_ / "link");
  ASSERT_EQ(mkfifo((place_ / "pipe").c_str(), 0600), 0);
  const auto opens = [&](const char* name, int flags) {
    const int file = open_own_file(place_ / name, flags);
    if (file >= 0) close(file);
    return file >= 0;
  };
  EXPECT_TRUE(opens("file", O_RDWR));
  EXPECT_FALSE(opens("link", O_RDWR));
  EXPECT_FALSE(opens("pipe", O_RDONLY)) << "and it does not wait for a writer";
  EXPECT_FALSE(opens("pipe", O_RDWR));
  EXPECT_TRUE(opens("new", O_RDWR | O_CREAT));
  if (geteuid() == 0) {
    ASSERT_EQ(chown((place_ / "file").c_str(), 65534, 65534), 0);
    EXPECT_FALSE(opens("file", O_RDONLY));
  }
}

TEST_F(OwnedFolderTest, AReplacedFileIsWholeAndALinkIsNotFollowed) {
  write(place_ / "victim", "mine");
  fs::create_symlink(place_ / "victim", place_ / "out");
  ASSERT_TRUE(replace_file(place_ / "out", "new"));
  EXPECT_EQ(read(place_ / "victim"), "mine");
  EXPECT_EQ(read(place_ / "out"), "new");
  EXPECT_FALSE(fs::is_symlink(place_ / "out"));
  EXPECT_FALSE(replace_file(place_ / "nowhere" / "out", "new"));
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(place_)) ++left;
  EXPECT_EQ(left, 2u) << "no half file stays";
}

}  // namespace
}  // namespace vramscope::support
