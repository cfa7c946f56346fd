#include "trace/compact.h"

#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/dictionary.h"
#include "trace/thin.h"

namespace vramscope::trace {
namespace {

using support::Buffer;

constexpr std::uint64_t kFewChunks = 16;
constexpr std::uint64_t kSmall = kMaxChunkEvents / 4;
constexpr std::uint64_t kMostEvents = 16u << 20;  // a few seconds' work
constexpr int kZstdLevel = 6;                     // nothing waits for the next event any more

bool is_chunk(const IndexEntry& block) { return block.head.type == std::to_underlying(BlockType::events); }

class Copy {
 public:
  Copy(const support::ReadFile& from, support::AppendFile& to, const Dictionaries& all) : from_(from), to_(to), all_(all) {}

  Status run(std::span<const IndexEntry> blocks) {
    Buffer header(kHeaderBytes);
    if (Status status = from_.read(0, header); !status) return status;
    if (Status status = to_.append(header); !status) return status;
    // All names first: they may come earlier than needed.
    DictionarySizes written = {0, 1, 0, 0, 0, 1, 0, 0};
    for (Buffer payload; encode_additions(all_, written, payload);)
      if (Status status = put({.type = std::to_underlying(BlockType::dictionary)}, payload); !status) return status;
    for (const IndexEntry& block : blocks) {
      if (!is_chunk(block)) continue;
      if (Status status = take(block); !status) return status;
    }
    return put_pending();
  }

  std::vector<IndexEntry> index() { return std::move(index_); }

 private:
  Status take(const IndexEntry& block) {
    Buffer stored(block.head.stored_bytes);
    if (Status status = from_.read(block.offset + kBlockHeadBytes, stored); !status) return status;
    const auto payload = open_payload(block.head, stored);
    if (!payload) return fail(kCannotReadBack);
    RecordedChunk next;
    next.chunk.first_event = block.head.first_event;
    next.chunk.first_alloc = block.head.first_alloc;
    if (Status status = decode_chunk(*payload, all_, next.chunk, next.ordinals); !status) return status;
    next.ordinals.resize(next.chunk.tables.alloc.size());
    std::iota(next.ordinals.begin(), next.ordinals.end(), next.chunk.first_alloc);
    // If a chunk could not be written, the ordinals of its allocations are missing.
    const auto follows = [&] { return pending_->chunk.first_alloc + pending_->ordinals.size() == next.chunk.first_alloc; };
    const auto fits = [&] { return pending_->chunk.kind.size() + next.chunk.kind.size() <= kMaxChunkEvents; };
    if (pending_ && !(follows() && fits()))
      if (Status status = put_pending(); !status) return status;
    if (pending_) {
      join(*pending_, next);
    } else {
      pending_ = std::move(next);
    }
    return {};
  }

  Status put_pending() {
    if (!pending_) return {};
    const Chunk& chunk = pending_->chunk;
    Buffer payload;
    encode_chunk(chunk, {}, all_.sites, payload);
    Status status = put({.type = std::to_underlying(BlockType::events),
                         .first_event = chunk.first_event,
                         .first_alloc = chunk.first_alloc,
                         .events = static_cast<std::uint32_t>(chunk.kind.size()),
                         .allocs = static_cast<std::uint32_t>(chunk.tables.alloc.size())},
                        payload);
    pending_.reset();
    return status;
  }

  Status put(const BlockHead& head, support::ByteSpan payload) {
    Buffer block;
    put_block(block, head, payload, kZstdLevel);
    index_.push_back({to_.size(), *take_block_head(block)});
    return to_.append(block);
  }

  const support::ReadFile& from_;
  support::AppendFile& to_;
  const Dictionaries& all_;
  std::optional<RecordedChunk> pending_;
  std::vector<IndexEntry> index_;
};

}  // namespace

bool worth_compacting(std::span<const IndexEntry> blocks) {
  std::uint64_t chunks = 0;
  std::uint64_t events = 0;
  for (const IndexEntry& block : blocks) {
    if ((block.head.flags & kThinned) != 0) return false;
    if (is_chunk(block)) ++chunks;
    events += block.head.events;
  }
  return chunks >= kFewChunks && events / chunks < kSmall && events <= kMostEvents;
}

Result<Compacted> compact(const std::filesystem::path& path, const Dictionaries& all, std::span<const IndexEntry> blocks) {
  const auto from = support::ReadFile::open(path);
  if (!from) return std::unexpected(from.error());
  std::filesystem::path beside = path;
  beside += ".compact";
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);  // left by a crash
  auto to = support::AppendFile::create(beside);
  if (!to) return std::unexpected(to.error());
  Copy copy(*from, **to, all);
  Status status = copy.run(blocks);
  if (status) status = (*to)->rename(path);
  if (!status) {
    std::filesystem::remove(beside, ignored);
    return std::unexpected(status.error());
  }
  return Compacted{std::move(*to), copy.index()};
}

}  // namespace vramscope::trace
