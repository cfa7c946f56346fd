#include "trace/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/test_file.h"
#include "trace/writer.h"

namespace vramscope::trace {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Dump : public TestFile {
 protected:
  std::vector<std::string> lines(DumpOptions options) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* out = open_memstream(&text, &size);
    const Reader reader = open();
    const Status status = dump(reader, options, out);
    EXPECT_TRUE(status) << status.error().message;
    std::fclose(out);
    std::vector<std::string> result;
    for (std::string_view rest(text, size); !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
      result.emplace_back(rest.substr(0, rest.find('\n')));
    std::free(text);
    return result;
  }
};

TEST_F(Dump, OneLineForEachEventWithItsNames) {
  {
    Writer writer = create();
    const PoolId pool = writer.pool({writer.string("GPU_0_bfc"), 0, Level::tensor, Memory::device, Framework::tensorflow});
    const FrameId frame = writer.frame({writer.string("fit"), writer.string("train.py"), 7, 0, {}});
    const StackId stack = writer.stack(1, std::vector{frame});
    const SiteId site = writer.site(
        {pool, 1000, writer.string("dense/MatMul"), writer.string("output"), 1, writer.string("[10,25]"), stack, 0, {}, 0});
    const ThreadId thread = writer.thread({4711, {}});
    writer.alloc({1, 2500000, thread}, {site, 0x7f00, 1024, -3});
    writer.free({2, 2500001, thread}, pool, 0x7f00, 0);
    writer.free({3, 2500002, thread}, pool, 0xdead, 0);
    ASSERT_TRUE(writer.finish());
  }
  EXPECT_THAT(
      lines({.jsonl = true}),
      ::testing::ElementsAre(
          R"({"event":"alloc","seq":1,"time_us":2500000,"thread":4711,"ordinal":0,"address":32512,"granted":1024,"pool":"GPU_0_bfc","device":0,"level":"tensor","requested":1000,"op":"dense/MatMul","region":"output","dtype":1,"shape":"[10,25]","stream":0,"owner":"","flags":0,"stack":["fit train.py:7"],"step":1})",
          R"({"event":"free","seq":2,"time_us":2500001,"thread":4711,"alloc":0,"address":32512,"granted":1024,"pool":"GPU_0_bfc","device":0,"level":"tensor","stream":0})",
          R"({"event":"free","seq":3,"time_us":2500002,"thread":4711,"alloc":null,"address":57005,"pool":"GPU_0_bfc","device":0,"level":"tensor","stream":0})"));
  const auto words = lines({.stacks = false});
  ASSERT_THAT(words, SizeIs(3));
  EXPECT_THAT(words[0], HasSubstr("address=0x7f00 granted=1024 pool=GPU_0_bfc"));
  EXPECT_THAT(words[2], HasSubstr("alloc=none address=0xdead"));
}

TEST_F(Dump, HostileNamesCannotBreakALine) {
  const std::string hostile = std::string("a\nb\0c\"\\\x1b[31m\xff", 13) + std::string(10000, 'x');
  {
    Writer writer = create();
    writer.append({1, 1, {}}, Mark{MarkKind::scope, MarkEdge::begin, writer.string(hostile), 0, {}});
    ASSERT_TRUE(writer.finish());
  }
  for (const bool jsonl : {false, true}) {
    const auto all = lines({.jsonl = jsonl});
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_THAT(all[0], HasSubstr(R"("a\u000ab\u0000c\"\\\u001b[31m\ufffdxxx)"));
    EXPECT_GT(all[0].size(), 10000u);
    for (const char c : all[0]) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

TEST_F(Dump, AFullOutputIsAnError) {
  {
    Writer writer = create();
    writer.append({1, 1, {}}, HostSample{1, 2});
    ASSERT_TRUE(writer.finish());
  }
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  const Status status = dump(open(), {}, full);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("No space left"));
  std::fclose(full);
}

}  // namespace
}  // namespace vramscope::trace
