// A good trace in which the input changes payloads, heads and the order of blocks; every checksum is then made right again, as
// somebody who means harm would do. Whatever comes of it, every question comes back, within the memory that its size allows.
#include "analyze/api.h"
#include "ask_everything.h"
#include "ask_forecast.h"
#include "choices.h"
#include "exporters/format.h"
#include "exporters/tables.h"
#include "scratch.h"
#include "support/compress.h"
#include "trace/block.h"
#include "trace/footer.h"

namespace {

using namespace vramscope;

struct Block {
  trace::BlockHead head;
  support::Buffer payload;
};

std::vector<Block> blocks_of(support::ByteSpan file) {
  std::vector<Block> out;
  for (std::size_t at = trace::kHeaderBytes; at < file.size();) {
    const auto head = trace::take_block_head(file.subspan(at));
    if (!head) break;
    const auto stored = file.subspan(at + trace::kBlockHeadBytes, head->stored_bytes);
    if (head->type != std::to_underlying(trace::BlockType::footer))
      out.push_back({*head, trace::open_payload(*head, stored).value()});
    at += trace::kBlockHeadBytes + head->stored_bytes;
  }
  return out;
}

support::Buffer sealed(const std::vector<Block>& blocks, bool footer) {
  support::Buffer file;
  trace::put_header(file, {trace::kMajor, trace::kMinor, 1});
  std::vector<trace::IndexEntry> places;
  for (const Block& block : blocks) {
    const std::uint64_t at = file.size();
    trace::put_block(file, block.head, block.payload, 1);
    places.push_back({at, trace::take_block_head(support::ByteSpan(file).subspan(at)).value()});
  }
  if (!footer) return file;
  const std::uint64_t at = file.size();
  support::Buffer index;
  trace::encode_footer(places, index);
  trace::BlockHead head;
  head.type = std::to_underlying(trace::BlockType::footer);
  trace::put_block(file, head, index, 1);
  trace::put_trailer(file, at);
  return file;
}

void change(std::vector<Block>& blocks, fuzz::Choices& choices) {
  if (blocks.empty()) return;
  const std::size_t i = choices.below(blocks.size());
  Block& block = blocks[i];
  switch (choices.below(12)) {
    case 0:
      block.head.events = static_cast<std::uint32_t>(choices.number());
      break;
    case 1:
      block.head.allocs = static_cast<std::uint32_t>(choices.number());
      break;
    case 2:
      block.head.first_alloc = choices.number();
      break;
    case 3:
      block.head.flags ^= trace::kThinned;
      break;
    case 4:
      blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(choices.below(blocks.size())), Block(block));
      break;
    case 5:
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    default:
      choices.edit(block.payload, true);
      break;
  }
}

class Nowhere final : public support::Sink {
 public:
  Status append(support::ByteSpan bytes) override {
    size_ += bytes.size();
    return {};
  }
  std::uint64_t size() const override { return size_; }

 private:
  std::uint64_t size_ = 0;
};

// One format, and one table where it has one.
void export_somehow(const analyze::Engine& engine, std::uint64_t which) {
  const auto formats = exporters::formats();
  const auto tables = exporters::tables();
  Nowhere sink;
  exporters::Output out(sink);
  const std::string table(tables[which / formats.size() % tables.size()].name);
  Status done = formats[which % formats.size()]->write({.engine = engine, .table = table}, out);
  if (done) done = out.finish();
  fuzz::require(done || !done.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::vector<Block>> samples = [] {
    std::vector<std::vector<Block>> out;
    out.push_back(blocks_of(fuzz::bytes_of_file(fuzz::write_sample())));
    for (const char* name : {"v1.0.vram", "v1.0-thinned.vram"})
      out.push_back(blocks_of(fuzz::bytes_of_file(std::filesystem::path(VRAMSCOPE_SAMPLES) / name)));
    return out;
  }();
  fuzz::Choices choices({data, size});
  std::vector<Block> blocks = samples[choices.below(samples.size())];
  const bool footer = choices.below(4) != 0;
  for (int i = 0; i < 24 && !choices.done() && blocks.size() < 300; ++i) change(blocks, choices);
  const auto path = fuzz::scratch() / "changed.vram";
  fuzz::write_file(path, sealed(blocks, footer));
  fuzz::read_all(path.string());
  if (auto summary = analyze::summarize(path.string()); !summary) fuzz::require(!summary.error().message.empty());
  analyze::OpenOptions options;
  options.keep_index = false;
  options.threads = 1;
  const auto engine = analyze::Engine::open(path, options);
  if (!engine) {
    fuzz::require(!engine.error().message.empty() && engine.error().message.find('\n') == std::string::npos);
    return 0;
  }
  test::ask_everything(*engine);
  const std::uint64_t which = support::checksum({data, size});
  fuzz::ask_forecast(*engine, which);
  export_somehow(*engine, which >> 32);
  return 0;
}
