// What the Source view shows of files that a trace names: only what the trace holds, or what lies below a folder that the viewer
// named.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "maker.h"
#include "serve/engine_service.h"

namespace vramscope::serve {

namespace {

namespace fs = std::filesystem;

class SourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("vramscope-source-{}", getpid());
    fs::create_directories(folder_ / "root/src");
    std::ofstream(folder_ / "root/src/train.py") << "import one\nmake_two()\nmake_three()\n";
    std::ofstream(folder_ / "secret.py") << "the secret\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Kept {
    trace::SourceState state = trace::SourceState::kept;
    std::map<std::uint64_t, std::string> lines;
  };

  // The answer about `file` of a trace in which line 2 of it allocates.
  SourceText answer(const std::string& file, const std::optional<Kept>& kept = {}, const fs::path& root = {},
                    std::uint64_t start_us = 0) {
    const fs::path trace = folder_ / fmt::format("{}.vram", ++traces_);
    auto maker = tracegen::Maker::create(trace, {.start_realtime_us = start_us});
    EXPECT_TRUE(maker);
    maker->alloc({.op = "Relu", .bytes = 1024, .file = file, .line = 2});
    if (kept) maker->source(file, kept->state, kept->lines);
    EXPECT_TRUE(maker->finish());
    auto library = Library::open({trace.string()}, false);
    EXPECT_TRUE(library);
    if (!root.empty()) {
      auto opened = support::SourceRoot::open(root);
      EXPECT_TRUE(opened);
      (*library)->set_source_root(std::move(*opened));
    }
    EngineService service(std::move(*library));
    const auto source = service.source({.trace = 0, .at = "peak", .file = file.substr(file.rfind('/') + 1)});
    EXPECT_TRUE(source && source->file);
    EXPECT_EQ(source->file->lines.size(), 1U) << file;  // the bytes beside the line are always there
    return source && source->file ? *source->file : SourceText{};
  }

  fs::path folder_;
  int traces_ = 0;
};

std::string joined(const SourceText& text) {
  std::string out;
  for (const TextLine& line : text.text) out += fmt::format("{} {}\n", line.line, line.text);
  return out;
}

TEST_F(SourceTest, ATraceRevealsNoFileOfItsReader) {
  ASSERT_EQ(mkfifo((folder_ / "fifo.py").c_str(), 0600), 0);
  for (const std::string& file : {std::string("/etc/shadow"), std::string("/etc/passwd"), std::string("/proc/self/environ"),
                                  std::string("/proc/kmsg"), (folder_ / "secret.py").string(), (folder_ / "fifo.py").string()}) {
    const SourceText text = answer(file);
    EXPECT_EQ(joined(text), "") << file;
    EXPECT_NE(text.status, "") << file;
    EXPECT_NE(text.remedy.find("--source-root"), std::string::npos);
  }
}

TEST_F(SourceTest, NothingOutsideTheRootIsShown) {
  fs::create_symlink(folder_ / "secret.py", folder_ / "root/link.py");
  fs::create_directory_symlink(folder_, folder_ / "root/up");
  ASSERT_EQ(mkfifo((folder_ / "root/fifo.py").c_str(), 0600), 0);
  for (const std::string& file : {std::string("/etc/passwd"), std::string("/a/link.py"), std::string("/a/up/secret.py"),
                                  std::string("/a/../secret.py"), std::string("/a/fifo.py"), (folder_ / "secret.py").string()}) {
    const SourceText text = answer(file, {}, folder_ / "root");
    EXPECT_EQ(joined(text), "") << file;
    EXPECT_NE(text.status, "") << file;
  }
}

TEST_F(SourceTest, ShowsWhatTheTraceHolds) {
  const SourceText text = answer("/gone/train.py", Kept{.lines = {{1, "import one"}, {2, "make_two()"}}});
  EXPECT_EQ(text.path, "/gone/train.py");
  EXPECT_EQ(joined(text), "1 import one\n2 make_two()\n");
  EXPECT_EQ(text.status, "");
  EXPECT_NE(answer("/gone/train.py", Kept{trace::SourceState::changed, {{2, "x"}}}).status.find("moved"), std::string::npos);
  const SourceText cell = answer("/gone/cell.py", Kept{trace::SourceState::missing, {}});
  EXPECT_NE(cell.status.find("did not exist"), std::string::npos);
}

TEST_F(SourceTest, ShowsAFileBelowTheRootThatAgreesWithTheTrace) {
  const std::string whole = "1 import one\n2 make_two()\n3 make_three()\n";
  const fs::path root = folder_ / "root";
  EXPECT_EQ(joined(answer((root / "src/train.py").string(), {}, root)), whole);
  EXPECT_EQ(joined(answer("/elsewhere/src/train.py", {}, root)), whole);
  EXPECT_EQ(joined(answer("/elsewhere/src/train.py", Kept{.lines = {{2, "make_two()"}}}, root)), whole);
  const SourceText other = answer("/elsewhere/src/train.py", Kept{.lines = {{2, "make_four()"}}}, root);
  EXPECT_EQ(joined(other), "2 make_four()\n");
  EXPECT_NE(other.status.find("different version"), std::string::npos);
}

TEST_F(SourceTest, SaysThatAFileIsNewerOnlyIfItIsKnown) {
  const fs::path root = folder_ / "root";
  const auto status = [&](std::uint64_t start_us) { return answer("/elsewhere/src/train.py", {}, root, start_us).status; };
  EXPECT_NE(status(1'000'000'000'000'000).find("moved"), std::string::npos);  // recorded in 2001, written now
  EXPECT_EQ(status(1), "");                                                   // imported from a profile without times
  EXPECT_EQ(status(0), "");
}

}  // namespace

}  // namespace vramscope::serve
