#include "trace/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/compress.h"
#include "support/file.h"
#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/dictionary.h"
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
  if (file.size() == 0) return fail(name + ": the file is empty; nothing was recorded into it");
  Buffer bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kHeaderBytes)));
  if (Status status = file.read(0, bytes); !status) return std::unexpected(status.error());
  FileHeader header;
  const HeaderFault fault = take_header(bytes, header);
  if (fault == HeaderFault::foreign) return fail(name + ": not a vramscope trace; give a .vram file that vramscope run wrote");
  // The version stands where it always will: a newer one may well have another header.
  if (bytes.size() >= 12 && header.major > kMajor) {
    return fail(fmt::format("{}: written in trace format {}.{}, this vramscope reads up to {}.{}; use a newer vramscope", name,
                            header.major, header.minor, kMajor, kMinor));
  }
  if (fault == HeaderFault::damaged && bytes.size() < kHeaderBytes)
    return fail(name + ": cut off inside its first 40 bytes; nothing can be read");
  if (fault == HeaderFault::damaged || header.major == 0)
    return fail(name + ": the file's header is damaged; nothing can be read");
  return header;
}

}  // namespace

struct Reader::State {
  explicit State(ReadFile opened) : file(std::move(opened)) {}

  ReadFile file;
  FileHeader header;
  Dictionaries all = initial_dictionaries();
  Damage damage;
  std::vector<ChunkPlace> chunks;
  OrdinalMap ordinals;
  std::uint64_t events = 0;
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

  Result<Buffer> payload(const IndexEntry& block) const {
    Buffer stored(block.head.stored_bytes);
    if (Status status = file.read(block.offset + kBlockHeadBytes, stored); !status) return std::unexpected(status.error());
    auto raw = open_payload(block.head, stored);
    if (!raw) return fail("its checksum does not hold");
    return std::move(*raw);
  }

  void add_dictionary(const IndexEntry& block) {
    const auto raw = payload(block);
    Status status = raw ? decode_additions(*raw, all, lost_names) : std::unexpected(raw.error());
    if (status) return;
    lost_names += block.head.stored_bytes * std::uint64_t{kMaxRatio};
    damaged(block.offset, fmt::format("the names at byte {} cannot be read: {}", block.offset, status.error().message));
  }

  void add_chunk(const IndexEntry& block) {
    ChunkPlace place{block, events, nullptr};
    if (block.head.events > kMaxChunkEvents || block.head.allocs > block.head.events)
      place.bad = "it has more events than the format allows";
    if (place.bad == nullptr && !checksum_holds(block)) place.bad = "its checksum does not hold";
    if (place.bad != nullptr) {
      damaged(block.offset,
              fmt::format("the {} events at byte {} cannot be read: {}", block.head.events, block.offset, place.bad));
    }
    events += block.head.events;
    chunks.push_back(place);
  }

  bool checksum_holds(const IndexEntry& block) const {
    Buffer stored(block.head.stored_bytes);
    return file.read(block.offset + kBlockHeadBytes, stored) && support::checksum(stored) == block.head.payload_checksum;
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
      return chunk_error(index, "it lists ordinals and is not thinned");
    if (chunk.tables.alloc.size() != place.block.head.allocs) return chunk_error(index, "it has other events than its head says");
    return {};
  }
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(const std::filesystem::path& path) {
  auto file = ReadFile::open(path);
  if (!file) return std::unexpected(file.error());
  const auto header = read_header(*file);
  if (!header) return std::unexpected(header.error());
  auto state = std::make_unique<State>(std::move(*file));
  state->header = *header;
  const auto scan = scan_blocks(state->file);
  if (!scan) return std::unexpected(scan.error());
  for (const Gap& gap : scan->gaps) {
    state->damaged(gap.offset, fmt::format("the {} bytes at byte {} are no part of a trace", gap.bytes, gap.offset));
    state->lost_names += gap.bytes * kMaxRatio;
  }
  for (const IndexEntry& block : scan->blocks) {
    if (block.head.type == std::to_underlying(BlockType::dictionary)) state->add_dictionary(block);
    if (block.head.type == std::to_underlying(BlockType::events)) state->add_chunk(block);
  }
  // An event that names no thread has thread 0, which is therefore always there.
  if (state->all.threads.empty()) state->all.threads.emplace_back();
  state->close_damage(*scan);
  for (std::size_t i = 0; i < state->chunks.size(); ++i) {
    const BlockHead& head = state->chunks[i].block.head;
    std::vector<std::uint64_t> listed;
    Chunk chunk;
    if ((head.flags & kThinned) != 0) (void)state->decode(i, chunk, listed);
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
  return {};
}

}  // namespace vramscope::trace
