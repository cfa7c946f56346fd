#include "trace/limit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/dictionary.h"

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::ByteSpan;
using support::ReadFile;

constexpr std::uint64_t kThousand = 1000;
constexpr std::uint64_t kTargetPerThousand = 700;  // of the limit: room for new events before the next rewrite

Buffer block_of(const RecordedChunk& thin, std::span<const Site> sites, int zstd_level) {
  Buffer payload;
  encode_chunk(thin.chunk, thin.ordinals, sites, payload);
  Buffer block;
  put_block(block,
            {.type = std::to_underlying(BlockType::events),
             .flags = kThinned,
             .first_event = thin.chunk.first_event,
             .first_alloc = thin.chunk.first_alloc,
             .events = static_cast<std::uint32_t>(thin.chunk.kind.size()),
             .allocs = static_cast<std::uint32_t>(thin.chunk.tables.alloc.size())},
            payload, zstd_level);
  return block;
}

std::vector<Peak> highest(std::vector<Peak> peaks) {
  std::ranges::sort(peaks, [](const Peak& a, const Peak& b) { return std::pair(a.pool, b.bytes) < std::pair(b.pool, a.bytes); });
  const auto rest = std::ranges::unique(peaks, {}, &Peak::pool);
  peaks.erase(rest.begin(), rest.end());
  return peaks;
}

Result<RecordedChunk> decode_block(ByteSpan block, const Dictionaries& all) {
  const auto head = take_block_head(block);
  const auto payload = head ? open_payload(*head, block.subspan(kBlockHeadBytes)) : std::nullopt;
  if (!payload) return fail(kCannotReadBack);
  RecordedChunk chunk;
  chunk.chunk.first_event = head->first_event;
  chunk.chunk.first_alloc = head->first_alloc;
  if (Status status = decode_chunk(*payload, all, chunk.chunk, chunk.ordinals); !status) return std::unexpected(status.error());
  return chunk;
}

}  // namespace

void TraceLimit::wrote(const IndexEntry& block) { blocks_.push_back({.place = block, .thinned = {}, .peaks = {}, .bytes = {}}); }

void TraceLimit::wrote(const IndexEntry& block, const Chunk& chunk, std::span<const Peak> peaks, std::span<const Site> sites) {
  wrote(block);
  blocks_.back().peaks = highest({peaks.begin(), peaks.end()});
  const RecordedChunk thin_chunk = thin(with_peaks(chunk, peaks), sites, Detail::pairs);
  if (thin_chunk.chunk.kind.size() > kMaxChunkEvents) return;
  blocks_.back().thinned = block_of(thin_chunk, sites, zstd_level_);
}

// Which chunks keep their detail.
std::vector<bool> TraceLimit::kept(Share share) const {
  std::vector<bool> keep(blocks_.size(), false);
  std::map<PoolId, std::pair<std::uint64_t, std::size_t>> highest_of;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].is_chunk()) continue;
    bytes += blocks_[i].size();
    keep[i] = bytes <= limit_ / share.first;
    for (const Peak& peak : blocks_[i].peaks) {
      auto& best = highest_of[peak.pool];
      if (peak.bytes > best.first) best = {peak.bytes, i};
    }
  }
  bytes = 0;
  for (std::size_t i = blocks_.size(); i-- > 0 && bytes <= limit_ / share.last;) {
    if (!blocks_[i].is_chunk()) continue;
    keep[i] = true;
    bytes += blocks_[i].size();
  }
  for (const auto& [pool, best] : highest_of) keep[best.second] = true;
  return keep;
}

std::vector<TraceLimit::Block> TraceLimit::thinned(Share share) const {
  const std::vector<bool> keep = kept(share);
  std::vector<Block> blocks = blocks_;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (keep[i] || blocks[i].thinned.empty()) continue;
    blocks[i].bytes = std::exchange(blocks[i].thinned, {});
    blocks[i].detail = Detail::pairs;
  }
  return blocks;
}

// Joins neighbors among the thinned chunks and thins the result again.
Result<std::vector<TraceLimit::Block>> TraceLimit::merged(std::vector<Block> blocks, const std::vector<bool>& keep,
                                                          const Dictionaries& all, Detail detail, const ReadFile& file) const {
  std::vector<Block> out;
  std::optional<RecordedChunk> pending;
  Block joined;
  const auto put_pending = [&] {
    if (!pending) return;
    pending = thin(*pending, all.sites, detail);
    joined.bytes = block_of(*pending, all.sites, zstd_level_);
    joined.place.head = *take_block_head(joined.bytes);
    joined.detail = detail;
    joined.peaks = highest(std::move(joined.peaks));
    out.push_back(std::exchange(joined, {}));
    pending.reset();
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    const bool full_already = block.detail >= detail && block.place.head.events > kMaxChunkEvents / 2;
    if (!block.is_chunk()) {
      // Names may come earlier than needed, never later.
      out.push_back(std::move(block));
      continue;
    }
    if (keep[i] || block.detail == Detail::full || full_already) {
      put_pending();
      out.push_back(std::move(block));
      continue;
    }
    if (block.bytes.empty()) {
      block.bytes.resize(block.size());
      if (Status status = file.read(block.place.offset, block.bytes); !status) return std::unexpected(status.error());
    }
    auto chunk = decode_block(block.bytes, all);
    if (!chunk) return std::unexpected(chunk.error());
    const auto fits = [&] { return pending->chunk.kind.size() + chunk->chunk.kind.size() <= kMaxChunkEvents; };
    if (pending && !fits()) {
      // Thinned only when it is full, so that joining many small chunks is not a pass over all events for each of them.
      pending = thin(*pending, all.sites, detail);
      if (pending->chunk.kind.size() > kMaxChunkEvents / 2 || !fits()) put_pending();
    }
    if (pending) {
      join(*pending, *chunk);
    } else {
      pending = std::move(*chunk);
    }
    joined.place.head.type = std::to_underlying(BlockType::events);
    joined.peaks.insert(joined.peaks.end(), block.peaks.begin(), block.peaks.end());
  }
  put_pending();
  return out;
}

Result<TraceLimit::Rewritten> TraceLimit::rewrite(const Dictionaries& all) {
  const auto file = ReadFile::open(path_);
  if (!file) return std::unexpected(file.error());
  next_ = std::max(limit_, file->size() + file->size() / 4);  // where it fails

  const auto size_of = [](const std::vector<Block>& blocks) {
    std::uint64_t bytes = kHeaderBytes;
    for (const Block& block : blocks) bytes += block.size();
    return bytes;
  };
  const std::uint64_t target = limit_ / kThousand * kTargetPerThousand;
  // Each attempt omits more than the previous one.
  std::vector<Block> blocks;
  for (const Share share : {Share{8, 4}, Share{64, 16}}) {
    blocks = thinned(share);
    if (size_of(blocks) <= target) break;
    const std::vector<bool> keep = kept(share);
    for (const Detail detail : {Detail::steps, Detail::totals}) {
      auto smaller = merged(thinned(share), keep, all, detail, *file);
      if (!smaller) return std::unexpected(smaller.error());
      blocks = std::move(*smaller);
      if (size_of(blocks) <= target) break;
    }
    if (size_of(blocks) <= target) break;
  }
  return write(std::move(blocks), *file);
}

Result<TraceLimit::Rewritten> TraceLimit::write(std::vector<Block> blocks, const ReadFile& file) {
  std::filesystem::path beside = path_;
  beside += ".thinned";
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);  // left by a crash
  auto out = support::AppendFile::create(beside);
  if (!out) return std::unexpected(out.error());
  Rewritten result{std::move(*out), {}};
  const auto give_up = [&](Error error) -> Result<Rewritten> {
    std::filesystem::remove(beside, ignored);
    return std::unexpected(std::move(error));
  };
  Buffer bytes(kHeaderBytes);
  if (Status status = file.read(0, bytes); !status) return give_up(status.error());
  if (Status status = result.file->append(bytes); !status) return give_up(status.error());
  for (Block& block : blocks) {
    if (block.bytes.empty()) {
      bytes.resize(block.size());
      if (Status status = file.read(block.place.offset, bytes); !status) return give_up(status.error());
    } else {
      bytes = std::exchange(block.bytes, {});
    }
    const auto head = take_block_head(bytes);
    if (!head) return give_up({path_.string() + ": " + kCannotReadBack});
    block.place = {result.file->size(), *head};
    if (Status status = result.file->append(bytes); !status) return give_up(status.error());
    result.index.push_back(block.place);
  }
  if (Status status = result.file->rename(path_); !status) return give_up(status.error());
  blocks_ = std::move(blocks);
  // If the limit cannot be kept, the room grows with the file, so that it is not rewritten for every few events.
  next_ = std::max(limit_, result.file->size() + result.file->size() / 8);
  return result;
}

}  // namespace vramscope::trace
