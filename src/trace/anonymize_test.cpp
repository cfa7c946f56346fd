#include "trace/anonymize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/dump.h"
#include "trace/test_file.h"

namespace vramscope::trace {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// The first results of the reference implementation's own test vectors: key 00 01 ... 0f, texts of 0, 1, 2, ... bytes 00 01 ...
TEST(Siphash, EqualsTheReference) {
  const std::array<std::uint64_t, 2> key = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  std::string text;
  const std::vector<std::uint64_t> expected = {0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au,
                                               0x85676696d7fb7e2du, 0xcf2794e0277187b7u, 0x18765564cd99a68du,
                                               0xcbc9466e58fee3ceu, 0xab0200f58b01d137u, 0x93f5f5799a932462u};
  for (const std::uint64_t hash : expected) {
    EXPECT_EQ(siphash(key, text), hash) << text.size();
    text += static_cast<char>(text.size());
  }
}

TEST(Anonymizer, KeepsTheStructureOfPathsAndEqualNamesEqual) {
  const Anonymizer hidden(random_key());
  EXPECT_EQ(hidden.hide(""), "");
  EXPECT_THAT(hidden.hide("model/dense/MatMul"), MatchesRegex("~[0-9a-f]{12}/~[0-9a-f]{12}/~[0-9a-f]{12}"));
  EXPECT_THAT(hidden.hide("/srv/train.py"), MatchesRegex("/~[0-9a-f]{12}/~[0-9a-f]{12}"));
  EXPECT_EQ(hidden.hide("a/b"), hidden.hide("a") + "/" + hidden.hide("b"));
  EXPECT_NE(hidden.hide("a"), Anonymizer(random_key()).hide("a"));
  EXPECT_EQ(hidden.hide(hidden.hide("a/b")), hidden.hide("a/b"));
}

TEST(Anonymizer, SettingsAreReadableByAllowListOnly) {
  const Anonymizer hidden(random_key());
  EXPECT_TRUE(Anonymizer::readable_setting("tensorflow.version", "2.21.0"));
  EXPECT_FALSE(Anonymizer::readable_setting("env.XLA_FLAGS", "--xla_dump_to=/srv/secret"));
  EXPECT_FALSE(Anonymizer::readable_setting("process.command", "python secret.py"));
  EXPECT_FALSE(Anonymizer::readable_setting("host", "secret"));
  EXPECT_EQ(hidden.hide_key("process.command"), "process.command");
  EXPECT_EQ(hidden.hide_key("secret_key"), hidden.hide("secret_key"));
}

class AnonymousTrace : public TestFile {};

TEST_F(AnonymousTrace, HoldsNoNameOrPathButWordsThatBelongToNobody) {
  {
    Writer writer = create({.anonymize = random_key()});
    const StringId secret = writer.string("secret/model/Secret");
    EXPECT_EQ(writer.string("secret/model/Secret"), secret);
    const PoolId pool = writer.pool({writer.string("GPU_0_bfc"), 0, Level::tensor, Memory::device, Framework::tensorflow});
    const FrameId frame =
        writer.frame({writer.string("secret_function"), writer.string("/secret/secret.py"), 1, 0, writer.string("abc123")});
    const StackId stack = writer.stack(1, std::vector{frame});
    const SiteId site =
        writer.site({pool, 100, secret, writer.string("output"), 1, writer.string("[5,5]"), stack, 0, writer.string("NCCL"), 0});
    writer.site({pool, 100, secret, {}, 1, {}, stack, 0, writer.string("libsecret.so.2"), 0});
    const ThreadId thread = writer.thread({1, writer.string("secret thread")});
    writer.op_source({secret, writer.string("/secret/model.py"), 1, writer.string("secret_call"), writer.string("secret_layer")});
    writer.alloc({1, 1, thread}, {site, 256, 256, 0});
    writer.append({2, 2, thread}, Mark{MarkKind::step, MarkEdge::begin, writer.string("train"), 1, writer.string("loop")});
    writer.append({3, 3, thread},
                  Mark{MarkKind::layer, MarkEdge::begin, writer.string("secret_layer"), 1, writer.string("secret detail")});
    writer.append({4, 4, thread},
                  Tag{256, 256, Category::parameter, writer.string("secret/kernel"), writer.string("secret_layer")});
    writer.append({5, 5, thread}, Setting{writer.string("tensorflow.version"), writer.string("2.21.0")});
    writer.append({6, 6, thread}, Setting{writer.string("process.command"), writer.string("python secret.py")});
    const auto s = [&](std::string_view text) { return writer.string(text); };
    writer.append({7, 7, thread}, VariableOp{secret, OpRole::storage, Category::parameter, s("secret/kernel")});
    writer.append({8, 8, thread}, HeldTensors{s("secret"), s("list"), s("global of secret"), s("/secret/secret.py"), 1, 2, 3, 4});
    writer.append({9, 9, thread}, Retrace{s("secret_function"), s("secret: 1 -> 2"), s("/secret/secret.py"), 1, 5});
    writer.append({10, 10, thread},
                  BakedConstant{secret, s("secret_function"), s("[7,7]"), s("float32"), s("/secret/secret.py"), 1, 2, 3});
    writer.append({11, 11, thread}, DatasetOnDevice{s("GPU:0"), s("/secret/secret.py"), 1, 2});
    ASSERT_TRUE(writer.finish());
  }
  const Reader reader = open();
  for (const std::string& text : reader.dictionaries().strings) {
    EXPECT_THAT(text, Not(HasSubstr("secret")));
    EXPECT_THAT(text, Not(HasSubstr("Secret")));
  }
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  EXPECT_TRUE(dump(reader, {.jsonl = true}, out));
  std::fclose(out);
  const std::string lines(text, size);
  std::free(text);
  for (const char* word :
       {R"("pool":"GPU_0_bfc")", R"("region":"output")", R"("shape":"[5,5]")", R"("owner":"NCCL")", R"("name":"train")",
        R"("detail":"loop")", R"("key":"tensorflow.version","value":"2.21.0")", R"("key":"process.command","value":"~)",
        R"("kind":"layer")", R"("role":"storage")", R"("category":"parameter")", R"("container":"list")",
        R"("shape":"[7,7]","dtype":"float32")", R"("device":"GPU:0")"}) {
    EXPECT_THAT(lines, HasSubstr(word));
  }
  // The layer of the mark, the tag and the op is one name still.
  const auto& all = reader.dictionaries();
  const auto chunk = reader.chunk(0);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->tables.mark.name[1], chunk->tables.tag.layer[0]);
  EXPECT_EQ(chunk->tables.mark.name[1], all.op_sources.at(0).layer);
}

}  // namespace
}  // namespace vramscope::trace
