#include "trace/scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::ByteSpan;
using support::ReadFile;

constexpr std::size_t kWindowBytes = 1u << 20;

bool is_footer(const BlockHead& head) { return head.type == std::to_underlying(BlockType::footer); }

std::optional<BlockHead> head_at(const ReadFile& file, std::uint64_t offset) {
  std::array<std::uint8_t, kBlockHeadBytes> bytes{};
  if (offset > file.size() || file.size() - offset < bytes.size() || !file.read(offset, bytes)) return std::nullopt;
  return take_block_head(bytes);
}

// A valid head contains the length of its block; the block is complete if the file is long enough.
bool whole(const ReadFile& file, const IndexEntry& block) {
  return block.offset <= file.size() && file.size() - block.offset >= kBlockHeadBytes + std::uint64_t{block.head.stored_bytes};
}

// The first valid head of a complete block at or after `from`.
std::optional<IndexEntry> search(const ReadFile& file, std::uint64_t from) {
  static constexpr std::array<std::uint8_t, 4> kMagic = {'V', 'B', 'L', 'K'};
  Buffer window(static_cast<std::size_t>(std::min<std::uint64_t>(kWindowBytes, file.size() - std::min(from, file.size()))));
  // A file of gigabytes may be one hole. No head begins in a hole, whose bytes are 0.
  ReadFile::Stretch data;
  while (from < file.size() && file.size() - from >= kBlockHeadBytes) {
    if (from >= data.end) {
      data = file.next_data(from);
      from = data.begin;
      continue;
    }
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(window.size(), data.end - from));
    if (!file.read(from, std::span(window).first(bytes))) return std::nullopt;
    const auto end = window.begin() + static_cast<std::ptrdiff_t>(bytes);
    for (auto at = window.begin();; ++at) {
      at = std::search(at, end, kMagic.begin(), kMagic.end());
      if (at == end) break;
      const IndexEntry block{from + static_cast<std::uint64_t>(at - window.begin()), {}};
      if (const auto head = head_at(file, block.offset); head && whole(file, {block.offset, *head}))
        return IndexEntry{block.offset, *head};
    }
    from = from + bytes == data.end ? data.end : from + bytes - (kMagic.size() - 1);
  }
  return std::nullopt;
}

Scan walk(const ReadFile& file) {
  Scan scan;
  scan.end = kHeaderBytes;
  while (scan.end < file.size()) {
    std::optional<IndexEntry> block;
    if (const auto head = head_at(file, scan.end)) block = IndexEntry{scan.end, *head};
    if (!block || !whole(file, *block)) {
      block = search(file, scan.end + 1);
      if (!block) break;
      scan.gaps.push_back({scan.end, block->offset - scan.end});
    }
    if (!is_footer(block->head)) scan.blocks.push_back(*block);
    scan.end = block->offset + kBlockHeadBytes + block->head.stored_bytes;
  }
  return scan;
}

std::optional<Buffer> payload_at(const ReadFile& file, const IndexEntry& block) {
  if (!whole(file, block)) return std::nullopt;
  Buffer stored(block.head.stored_bytes);
  if (!file.read(block.offset + kBlockHeadBytes, stored)) return std::nullopt;
  return open_payload(block.head, stored);
}

std::optional<Scan> by_footer(const ReadFile& file) {
  std::array<std::uint8_t, kTrailerBytes> trailer{};
  if (file.size() < kHeaderBytes + kBlockHeadBytes + kTrailerBytes) return std::nullopt;
  const std::uint64_t end = file.size() - kTrailerBytes;
  if (!file.read(end, trailer)) return std::nullopt;
  const auto footer = take_trailer(trailer);
  if (!footer) return std::nullopt;
  Scan scan;
  scan.complete = true;
  scan.end = file.size();
  for (std::uint64_t at = *footer; at != end;) {
    const auto head = head_at(file, at);
    if (!head || !is_footer(*head)) return std::nullopt;
    const auto payload = payload_at(file, {at, *head});
    if (!payload) return std::nullopt;
    const auto blocks = decode_footer(*payload);
    if (!blocks) return std::nullopt;
    scan.blocks.insert(scan.blocks.end(), blocks->begin(), blocks->end());
    at += kBlockHeadBytes + head->stored_bytes;
  }
  // Blocks follow one another from the header to the footer.
  std::uint64_t at = kHeaderBytes;
  for (const IndexEntry& block : scan.blocks) {
    if (block.offset != at || is_footer(block.head)) return std::nullopt;
    at += kBlockHeadBytes + std::uint64_t{block.head.stored_bytes};
  }
  return at == *footer ? std::optional(std::move(scan)) : std::nullopt;
}

}  // namespace

Result<Scan> scan_blocks(const ReadFile& file) {
  if (auto scan = by_footer(file)) return std::move(*scan);
  return walk(file);
}

}  // namespace vramscope::trace
