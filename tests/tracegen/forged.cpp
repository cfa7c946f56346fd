#include "forged.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <utility>

#include "trace/block.h"
#include "trace/chunk.h"
#include "trace/dictionary.h"

namespace vramscope::tracegen {
namespace {

using namespace trace;
using support::Buffer;

constexpr std::size_t kFileBytes = 20'000;
constexpr std::uint32_t kRows = kMaxChunkEvents;

// Columns of one value take a few bytes, however many rows they have.
Chunk equal_events(EventKind kind) {
  Chunk chunk;
  chunk.kind.assign(kRows, kind);
  chunk.seq.assign(kRows, 0);
  chunk.time_us.assign(kRows, 0);
  chunk.thread.assign(kRows, ThreadId{});
  for_each_table(chunk.tables, [&](EventKind each, auto& table) {
    if (each == kind)
      for_each_column(table, [](std::uint64_t, std::string_view, std::string_view, auto& column) { column.resize(kRows); });
  });
  return chunk;
}

Dictionaries names() {
  Dictionaries all = initial_dictionaries();
  all.strings.emplace_back("pool");
  all.pools.push_back({StringId{1}, 0, Level::tensor, Memory::device, Framework::tensorflow});
  all.sites.push_back({.pool = PoolId{0}, .requested = 256});
  all.threads.emplace_back();
  return all;
}

void put_names(Buffer& file, const Dictionaries& all) {
  DictionarySizes written = {0, 1, 0, 0, 0, 1, 0, 0};
  for (Buffer payload; encode_additions(all, written, payload);)
    put_block(file, {.type = std::to_underlying(BlockType::dictionary)}, payload, 19);
}

Buffer many(EventKind kind) {
  const Dictionaries all = names();
  Chunk chunk = equal_events(kind);
  Buffer file, payload;
  put_header(file, {kMajor, kMinor, 1});
  put_names(file, all);
  encode_chunk(chunk, {}, all.sites, payload);
  BlockHead head{.type = std::to_underlying(BlockType::events), .events = kRows, .allocs = kind == EventKind::alloc ? kRows : 0};
  for (; file.size() < kFileBytes; head.first_event += kRows, head.first_alloc += head.allocs) put_block(file, head, payload, 19);
  return file;
}

// Chunks that are encoded as they are, one after the other.
Buffer file_of(const Dictionaries& all, std::span<Chunk> chunks) {
  Buffer file;
  put_header(file, {kMajor, kMinor, 1});
  put_names(file, all);
  BlockHead head{.type = std::to_underlying(BlockType::events), .events = kRows};
  std::uint64_t time_us = 0;
  for (Chunk& chunk : chunks) {
    for (std::uint64_t& each : chunk.time_us) each = time_us += 10;
    Buffer payload;
    encode_chunk(chunk, {}, all.sites, payload);
    head.allocs = static_cast<std::uint32_t>(chunk.tables.alloc.size());
    put_block(file, head, payload, 19);
    head.first_event += kRows;
    head.first_alloc += head.allocs;
  }
  return file;
}

// Blocks at addresses of their own, never freed.
Chunk live_blocks(std::uint64_t first) {
  Chunk chunk = equal_events(EventKind::alloc);
  for (std::uint64_t i = 0; i < kRows; ++i) {
    chunk.tables.alloc.address[i] = (first + i + 1) * 256;
    chunk.tables.alloc.granted[i] = 256;
  }
  return chunk;
}

// Very many phases, each with very many blocks at its end and very many samples during it.
Buffer phases() {
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 4; ++i) chunks.push_back(live_blocks(i * kRows));
  chunks.push_back(equal_events(EventKind::host_sample));
  Chunk marks = equal_events(EventKind::mark);
  std::ranges::fill(marks.tables.mark.kind, MarkKind::scope);
  std::ranges::fill(marks.tables.mark.edge, MarkEdge::begin);
  std::ranges::fill(marks.tables.mark.name, StringId{1});
  chunks.push_back(marks);
  chunks.push_back(marks);
  return file_of(names(), chunks);
}

// The same long settings over and over.
Buffer long_settings() {
  constexpr std::uint32_t kTexts = 16;
  Dictionaries all = names();
  std::mt19937_64 random(1);
  for (std::uint32_t i = 0; i < kTexts; ++i) {
    std::string text(64'000, 'x');  // the texts begin alike, and names may not be packed without limit
    std::generate_n(text.end() - 2500, 2500, [&] { return static_cast<char>('a' + random() % 26); });
    all.strings.push_back(text);
  }
  Chunk chunk = equal_events(EventKind::setting);
  for (std::uint32_t i = 0; i < kRows; ++i) {
    chunk.tables.setting.key[i] = StringId{2 + i % kTexts};
    chunk.tables.setting.value[i] = StringId{2 + i * 7 % kTexts};
  }
  std::vector<Chunk> chunks(15, chunk);
  chunks.push_back(live_blocks(0));
  return file_of(all, chunks);
}

// Very many live blocks at each of very many instants.
Buffer busy_timeline() {
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 16; ++i) chunks.push_back(live_blocks(i * kRows));
  return file_of(names(), chunks);
}

// A driver's blocks, all of an owner whose path is long and packs well.
Buffer long_owner() {
  Dictionaries all = names();
  all.strings.emplace_back(60'000, 'x');
  all.pools[0].level = Level::driver;
  all.sites[0].owner = StringId{2};
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 16; ++i) chunks.push_back(live_blocks(i * kRows));
  return file_of(all, chunks);
}

// A pool that takes very many regions and returns them, the newest first.
Buffer regions() {
  constexpr std::uint64_t kChunks = 4;
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 2 * kChunks; ++i) {
    Chunk chunk = equal_events(EventKind::region);
    const bool returned = i >= kChunks;
    for (std::uint64_t row = 0; row < kRows; ++row) {
      const std::uint64_t n = i % kChunks * kRows + row;
      chunk.tables.region.address[row] = (returned ? kChunks * kRows - n : n + 1) * 4096;
      chunk.tables.region.bytes[row] = 4096;
      chunk.tables.region.returned[row] = returned;
    }
    chunks.push_back(chunk);
  }
  chunks.push_back(live_blocks(0));
  return file_of(names(), chunks);
}

// Very many pools on as many devices, each with blocks of many sizes and failures.
Buffer pools() {
  constexpr std::uint64_t kPools = 20'000;
  Dictionaries all = names();
  for (std::uint64_t i = 1; i < kPools; ++i) {
    all.pools.push_back(all.pools[0]);
    all.pools.back().device = static_cast<std::int64_t>(i);
    all.sites.push_back({.pool = PoolId{static_cast<std::uint32_t>(i)}, .requested = 256});
  }
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 4; ++i) {
    chunks.push_back(live_blocks(i * kRows));
    for (std::uint64_t row = 0; row < kRows; ++row) {
      chunks.back().tables.alloc.site[row] = SiteId{static_cast<std::uint32_t>(row % kPools)};
      chunks.back().tables.alloc.granted[row] = (i * kRows + row) * 256;
    }
  }
  Chunk failures = equal_events(EventKind::oom);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    failures.tables.oom.site[row] = SiteId{static_cast<std::uint32_t>(row % kPools)};
    failures.tables.oom.final[row] = true;
  }
  chunks.push_back(failures);
  return file_of(all, chunks);
}

// As many pools as there may be, each on a device of its own, with steps.
Buffer many_devices() {
  Dictionaries all = names();
  for (std::uint32_t i = 1; i < kMaxPools; ++i) {
    all.pools.push_back(all.pools[0]);
    all.pools.back().device = i;
    all.sites.push_back({.pool = PoolId{i}, .requested = 256});
  }
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 8; ++i) {
    chunks.push_back(live_blocks(i * kRows));
    for (std::uint64_t row = 0; row < kRows; ++row)
      chunks.back().tables.alloc.site[row] = SiteId{static_cast<std::uint32_t>(row % kMaxPools)};
    if (i != 3) continue;
    chunks.push_back(equal_events(EventKind::mark));
    MarkColumns& marks = chunks.back().tables.mark;
    std::ranges::fill(marks.kind, MarkKind::step);
    std::ranges::fill(marks.edge, MarkEdge::instant);
    std::ranges::fill(marks.name, StringId{1});
    for (std::uint32_t row = 0; row < kRows; ++row) marks.number[row] = row;
  }
  return file_of(all, chunks);
}

// A pool on a device whose number is higher than any table should be.
Buffer high_device() {
  Dictionaries all = names();
  all.pools[0].device = std::int64_t{1} << 40;
  Chunk chunk = live_blocks(0);
  return file_of(all, std::span(&chunk, 1));
}

// Sizes that, each with its site, share one slot of a table that is hashed without a secret: 31 * size + site is always the same.
Buffer same_slot() {
  constexpr std::uint32_t kSites = 20'000;
  constexpr std::uint64_t kInverse = 0xef7bdef7bdef7bdf;  // of 31
  static_assert(31 * kInverse == 1);
  Dictionaries all = names();
  for (std::uint32_t i = 1; i < kSites; ++i) all.sites.push_back({.pool = PoolId{0}, .requested = i});
  Chunk chunk = live_blocks(0);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    chunk.tables.alloc.site[row] = SiteId{row % kSites};
    chunk.tables.alloc.granted[row] = (kSites - row % kSites) * kInverse;
  }
  return file_of(all, std::span(&chunk, 1));
}

// Heads of blocks without content.
Buffer heads() {
  Buffer file;
  put_header(file, {kMajor, kMinor, 1});
  put_names(file, names());
  BlockHead head{.type = std::to_underlying(BlockType::events), .events = kRows, .allocs = kRows};
  for (; file.size() < kFileBytes; head.first_alloc += kRows) put_block(file, head, {}, 19);
  return file;
}

const std::map<std::string, std::function<Buffer()>> kForged = {
    {"manyallocs", [] { return many(EventKind::alloc); }},
    {"manyfrees", [] { return many(EventKind::free_); }},
    {"manymarks", [] { return many(EventKind::mark); }},
    {"manysettings", [] { return many(EventKind::setting); }},
    {"manyooms", [] { return many(EventKind::oom); }},
    {"manysamples", [] { return many(EventKind::device_sample); }},
    {"manyheads", heads},
    {"manyphases", phases},
    {"longsettings", long_settings},
    {"busytimeline", busy_timeline},
    {"longowner", long_owner},
    {"manyregions", regions},
    {"manypools", pools},
    {"manydevices", many_devices},
    {"highdevice", high_device},
    {"sameslot", same_slot},
};

}  // namespace

std::vector<std::string> forged_cases() {
  std::vector<std::string> out;
  for (const auto& [name, make] : kForged) out.push_back(name);
  return out;
}

Status write_forged(const std::string& name, const std::filesystem::path& path) {
  const Buffer file = kForged.at(name)();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  if (!out.flush()) return fail(path.string() + ": cannot be written");
  return {};
}

}  // namespace vramscope::tracegen
