#include "trace/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "support/compress.h"
#include "support/file.h"
#include "support/memory_budget.h"
#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/dictionary.h"
#include "trace/old_reports.h"
#include "trace/ordinals.h"
#include "trace/scan.h"

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::ReadFile;

struct ChunkPlace {
  IndexEntry block;
  std::uint64_t first_event = 0;  // events in the chunks before it
  const char* bad = nullptr;      // why it cannot be read
};

Result<FileHeader> read_header(const ReadFile& file) {
  const std::string name = file.path().string();
  if (file.size() == 0) return fail(name + ": the file is empty: nothing was recorded");
  Buffer bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kHeaderBytes)));
  if (Status status = file.read(0, bytes); !status) return std::unexpected(status.error());
  FileHeader header;
  const HeaderFault fault = take_header(bytes, header);
  if (fault == HeaderFault::foreign) return fail(name + ": not a vramscope trace; pass a .vram file written by 'vramscope run'");
  // The version stands where it always will: a newer one may well have another header.
  if (bytes.size() >= 12 && header.major > kMajor) {
    return fail(fmt::format("{}: uses trace format {}.{}, but this vramscope reads only up to {}.{}; use a newer vramscope", name,
                            header.major, header.minor, kMajor, kMinor));
  }
  if (fault == HeaderFault::damaged && bytes.size() < kHeaderBytes)
    return fail(name + ": truncated within its first 40 bytes; nothing can be read");
  if (fault == HeaderFault::damaged || header.major == 0)
    return fail(name + ": the file's header is damaged; nothing can be read");
  return header;
}

// Everything that determines what a reader returns: the header, the heads of all blocks, and the payloads that it uses.
class Identity {
 public:
  explicit Identity(const support::ChecksumKey* key) : key_(key) {}

  void add(std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values) support::put_fixed(bytes_, value);
  }
  void add_payload(support::ByteSpan stored) {
    if (key_ == nullptr) return;
    const support::WideChecksum sum = support::wide_checksum(stored, *key_);
    add({sum[0], sum[1]});
  }
  void add_head(const IndexEntry& block, bool good) {
    const BlockHead& head = block.head;
    add({block.offset, head.type, head.codec, head.flags, head.stored_bytes, head.raw_bytes, head.first_event, head.first_alloc,
         head.events, head.allocs, head.payload_checksum, good});
  }
  std::optional<support::WideChecksum> content() const {
    return key_ == nullptr ? std::nullopt : std::optional(support::wide_checksum(bytes_, *key_));
  }

 private:
  const support::ChecksumKey* key_;
  Buffer bytes_;
};

}  // namespace

struct Reader::State {
  explicit State(ReadFile opened)
      : file(std::move(opened)),
        memory_limit(support::memory_for(file.stored())),
        most_events(support::events_for(file.stored())),
        memory(memory_limit) {}

  ReadFile file;
  std::uint64_t memory_limit, most_events;
  support::MemoryBudget memory;  // of what stays with the reader
  FileHeader header;
  Dictionaries all = initial_dictionaries();
  OldReports old_reports;
  Damage damage;
  std::vector<ChunkPlace> chunks;
  OrdinalMap ordinals;
  std::uint64_t events = 0;
  std::optional<support::WideChecksum> content;
  std::uint64_t lost_names = 0;  // how many dictionary entries damaged bytes may have held

  // The first damage is named, the others are counted.
  std::uint64_t more_damage = 0;
  void damaged(std::uint64_t offset, std::string what) {
    if (!damage.message.empty()) {
      ++more_damage;
      return;
    }
    damage.offset = offset;
    damage.bytes = file.size() - offset;
    damage.message = std::move(what);
  }

  Result<Buffer> payload(const IndexEntry& block, Identity* identity = nullptr) const {
    Buffer stored(block.head.stored_bytes);
    if (Status status = file.read(block.offset + kBlockHeadBytes, stored); !status) return std::unexpected(status.error());
    if (identity != nullptr) identity->add_payload(stored);
    auto raw = open_payload(block.head, stored);
    if (!raw) return fail("its checksum does not match");
    return std::move(*raw);
  }

  bool add_dictionary(const IndexEntry& block, Identity& identity) {
    const auto raw = payload(block, &identity);
    Status status = raw ? decode_additions(*raw, all, lost_names, memory) : std::unexpected(raw.error());
    if (status) return true;
    lost_names += block.head.stored_bytes * std::uint64_t{kMaxRatio};
    damaged(block.offset, fmt::format("the names at byte {} cannot be read: {}", block.offset, status.error().message));
    return false;
  }

  bool add_chunk(const IndexEntry& block, Identity& identity) {
    ChunkPlace place{block, events, nullptr};
    if (block.head.events > kMaxChunkEvents || block.head.allocs > block.head.events) place.bad = kTooManyEvents;
    if (place.bad == nullptr && !checksum_holds(block, identity)) place.bad = "its checksum does not match";
    if (place.bad != nullptr) {
      damaged(block.offset,
              fmt::format("the {} events at byte {} cannot be read: {}", block.head.events, block.offset, place.bad));
    }
    events += block.head.events;
    chunks.push_back(place);
    return place.bad == nullptr;
  }

  bool checksum_holds(const IndexEntry& block, Identity& identity) const {
    Buffer stored(block.head.stored_bytes);
    if (!file.read(block.offset + kBlockHeadBytes, stored)) return false;
    identity.add_payload(stored);
    return support::checksum(stored) == block.head.payload_checksum;
  }

  void close_damage(const Scan& scan) {
    damage.truncated = !scan.complete;
    if (scan.end < file.size() && damage.message.empty()) {
      damaged(scan.end, fmt::format("the last {} bytes {}", file.size() - scan.end, kUnfinished));
    }
    if (more_damage > 0) damage.message += fmt::format("; {} more places are damaged", more_damage);
  }

  std::unexpected<Error> chunk_error(std::size_t index, std::string_view why) const {
    return fail(fmt::format("{}: the {} events at byte {} cannot be read: {}", file.path().string(),
                            chunks[index].block.head.events, chunks[index].block.offset, why));
  }

  // Everything but the translation of ordinals.
  Status decode(std::size_t index, Chunk& chunk, std::vector<std::uint64_t>& listed) const {
    const ChunkPlace& place = chunks[index];
    if (place.bad != nullptr) return chunk_error(index, place.bad);
    const auto raw = payload(place.block);
    if (!raw) return chunk_error(index, raw.error().message);
    chunk.first_event = place.first_event;
    chunk.first_alloc = place.block.head.first_alloc;
    if (Status status = decode_chunk(*raw, all, chunk, listed); !status) return chunk_error(index, status.error().message);
    if (!listed.empty() && (place.block.head.flags & kThinned) == 0)
      return chunk_error(index, "it lists ordinals but is not thinned");
    if (chunk.tables.alloc.size() != place.block.head.allocs) return chunk_error(index, "its events do not match its header");
    return {};
  }
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(const std::filesystem::path& path, const support::ChecksumKey* key) {
  auto file = ReadFile::open(path);
  if (!file) return std::unexpected(file.error());
  const auto header = read_header(*file);
  if (!header) return std::unexpected(header.error());
  auto state = std::make_unique<State>(std::move(*file));
  state->header = *header;
  const auto scan = scan_blocks(state->file);
  if (!scan) return std::unexpected(scan.error());
  for (const Gap& gap : scan->gaps) {
    state->damaged(gap.offset, fmt::format("the {} bytes at byte {} do not belong to a trace", gap.bytes, gap.offset));
    state->lost_names += gap.bytes * kMaxRatio;
  }
  Identity identity(key);
  identity.add({header->major, header->minor, header->start_realtime_us, state->file.size(), scan->complete});
  for (const IndexEntry& block : scan->blocks) {
    bool good = true;
    if (block.head.type == std::to_underlying(BlockType::dictionary)) good = state->add_dictionary(block, identity);
    if (block.head.type == std::to_underlying(BlockType::events)) good = state->add_chunk(block, identity);
    identity.add_head(block, good);
  }
  state->content = identity.content();
  // An event that names no thread has thread 0, which is therefore always there.
  if (state->all.threads.empty()) state->all.threads.emplace_back();
  if (header->major == 1 && header->minor < kReportsAreEvents) {
    count_frames_that_were_cut(state->all);
    state->old_reports = OldReports(state->all, state->memory);
  }
  state->close_damage(*scan);
  for (std::size_t i = 0; i < state->chunks.size(); ++i) {
    const BlockHead& head = state->chunks[i].block.head;
    std::vector<std::uint64_t> listed;
    Chunk chunk;
    if ((head.flags & kThinned) != 0) (void)state->decode(i, chunk, listed);
    if (!state->memory.take(listed.size(), sizeof(listed[0])))
      return fail(fmt::format("{}: a file of {} bytes cannot hold that many events; it is damaged or forged", path.string(),
                              state->file.size()));
    state->ordinals.add(head.first_alloc, head.allocs, (head.flags & kThinned) != 0, std::move(listed));
  }
  return Reader(std::move(state));
}

const Dictionaries& Reader::dictionaries() const { return state_->all; }
const Damage& Reader::damage() const { return state_->damage; }
std::uint64_t Reader::start_realtime_us() const { return state_->header.start_realtime_us; }
std::uint64_t Reader::events() const { return state_->events; }
std::uint64_t Reader::allocs() const { return state_->ordinals.allocs(); }
std::size_t Reader::chunks() const { return state_->chunks.size(); }
const std::filesystem::path& Reader::path() const { return state_->file.path(); }
const std::optional<support::WideChecksum>& Reader::content() const { return state_->content; }
std::uint64_t Reader::memory_limit() const { return state_->memory_limit; }
std::uint64_t Reader::most_events() const { return state_->most_events; }

Result<Chunk> Reader::chunk(std::size_t index) const {
  Chunk chunk;
  if (Status status = read(index, chunk); !status) return std::unexpected(status.error());
  return chunk;
}

Status Reader::read(std::size_t index, Chunk& into) const {
  if (index >= state_->chunks.size()) return fail(fmt::format("{}: there is no chunk {}", path().string(), index));
  std::vector<std::uint64_t> listed;
  if (Status status = state_->decode(index, into, listed); !status) return status;
  into.first_alloc = state_->ordinals.first(index);
  state_->ordinals.translate(into.tables.free.alloc);
  state_->old_reports.upgrade(into);
  return {};
}

}  // namespace vramscope::trace
