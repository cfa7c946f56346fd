// An index in the cache in which the input changes rows, values, counts and places; every checksum is then made right again with
// the user's own key. It may be refused, and its answers may be wrong then; using it must be safe.
#include <cstddef>
#include <stdexcept>

#include "analyze/index/index_file.h"
#include "ask_everything.h"
#include "ask_forecast.h"
#include "choices.h"
#include "scratch.h"
#include "support/compress.h"

namespace {

using namespace vramscope;
using analyze::IndexHeader;
using analyze::IndexSection;
using analyze::PackedBlock;

struct Parts {
  IndexHeader header;
  std::vector<IndexSection> sections;
  std::vector<PackedBlock> blocks;
  std::vector<support::Buffer> content;  // of each block, unpacked
};

template <typename T>
T take(support::ByteSpan bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void put(support::Buffer& out, const T& value) {
  support::put_bytes(out, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
}

Parts parts_of(support::ByteSpan file) {
  Parts out;
  out.header = take<IndexHeader>(file, 0);
  std::uint64_t at = out.header.directory_offset;
  for (std::uint32_t i = 0; i < out.header.sections; ++i, at += sizeof(IndexSection))
    out.sections.push_back(take<IndexSection>(file, at));
  for (std::uint64_t i = 0; i < out.header.blocks; ++i, at += sizeof(PackedBlock)) {
    out.blocks.push_back(take<PackedBlock>(file, at));
    const PackedBlock& block = out.blocks.back();
    support::Buffer raw(block.bytes);
    fuzz::require(support::decompress(file.subspan(block.offset, block.stored), raw));
    out.content.push_back(std::move(raw));
  }
  return out;
}

support::Buffer sealed(Parts parts, const support::ChecksumKey& key) {
  support::Buffer file(sizeof(IndexHeader));
  for (std::size_t i = 0; i < parts.blocks.size(); ++i) {
    PackedBlock& block = parts.blocks[i];
    support::Buffer packed;
    fuzz::require(support::compress(parts.content[i], 1, packed));
    block.offset += file.size();  // what a change of it was, relative to where it belongs
    block.stored = static_cast<std::uint32_t>(packed.size());
    block.checksum = support::checksum(packed, key);
    support::put_bytes(file, packed);
  }
  support::Buffer directory;
  for (const IndexSection& section : parts.sections) put(directory, section);
  for (const PackedBlock& block : parts.blocks) put(directory, block);
  IndexHeader& header = parts.header;
  header.directory_offset = file.size();
  header.directory_checksum = support::checksum(directory, key);
  support::put_bytes(file, directory);
  header.file_bytes = file.size();
  header.checksum = support::checksum({reinterpret_cast<const std::uint8_t*>(&header), offsetof(IndexHeader, checksum)}, key);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

void change(Parts& parts, fuzz::Choices& choices) {
  const std::size_t i = choices.below(parts.blocks.size());
  switch (choices.below(16)) {
    case 0:
      parts.sections[choices.below(parts.sections.size())].count = choices.number();
      break;
    case 1:
      parts.sections[choices.below(parts.sections.size())].element = static_cast<std::uint32_t>(choices.number());
      break;
    case 2:
      std::swap(parts.sections[choices.below(parts.sections.size())].id, parts.sections[choices.below(parts.sections.size())].id);
      break;
    case 3:
      parts.blocks[i].bytes = static_cast<std::uint32_t>(choices.number());
      break;
    case 4:
      parts.blocks[i].offset = choices.number();
      break;
    case 5:
      std::swap(parts.content[i], parts.content[choices.below(parts.content.size())]);
      break;
    case 6:
      choices.edit(parts.content[i], true);
      break;
    default:
      choices.edit(parts.content[i], false);
      break;
  }
}

struct Sample {
  std::filesystem::path trace = fuzz::write_sample(), cache = fuzz::scratch() / "cache", file;
  support::ChecksumKey key{};
  Parts parts;

  Sample() {
    analyze::OpenOptions options;
    options.cache = cache;
    options.index_after_s = 0;
    fuzz::require(analyze::Engine::open(trace, options).has_value());
    for (const auto& entry : std::filesystem::directory_iterator(cache))
      if (entry.path().extension() == ".index") file = entry.path();
    const support::Buffer secret = fuzz::bytes_of_file(cache / "key");
    fuzz::require(!file.empty() && secret.size() == key.size());
    std::copy(secret.begin(), secret.end(), key.begin());
    parts = parts_of(fuzz::bytes_of_file(file));
    for (PackedBlock& block : parts.blocks) block.offset = 0;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sample sample;
  fuzz::Choices choices({data, size});
  Parts parts = sample.parts;
  for (int i = 0; i < 8 && !choices.done(); ++i) change(parts, choices);
  fuzz::write_file(sample.file, sealed(std::move(parts), sample.key));
  analyze::OpenOptions options;
  options.cache = sample.cache;
  options.index_after_s = 1e9;  // the changed one stays, used or not
  options.threads = 1;
  try {
    const auto engine = analyze::Engine::open(sample.trace, options);
    fuzz::require(engine.has_value());  // the trace is good
    test::ask_everything(*engine);
    fuzz::ask_forecast(*engine, support::checksum({data, size}));
  } catch (const std::runtime_error&) {
    return 0;  // a column turned out to be damaged when it was used
  }
  return 0;
}
