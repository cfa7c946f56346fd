// Everything a user of the reader may do with a file, checking what the reader promises.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "trace/dump.h"
#include "trace/reader.h"

namespace vramscope::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void read_all(const std::string& path) {
  const auto reader = trace::Reader::open(path);
  if (!reader) {
    require(!reader.error().message.empty() && reader.error().message.find('\n') == std::string::npos);
    return;
  }
  const trace::Dictionaries& all = reader->dictionaries();
  trace::Chunk chunk;
  for (std::size_t i = 0; i < reader->chunks(); ++i) {
    if (const Status status = reader->read(i, chunk); !status) {
      require(!status.error().message.empty());
      continue;
    }
    require(chunk.seq.size() == chunk.kind.size() && chunk.time_us.size() == chunk.kind.size() &&
            chunk.thread.size() == chunk.kind.size());
    std::size_t rows = 0;
    trace::for_each_table(chunk.tables, [&](trace::EventKind, const auto& table) { rows += table.size(); });
    require(rows == chunk.kind.size());
    for (const trace::SiteId site : chunk.tables.alloc.site) require(std::to_underlying(site) < all.sites.size());
    for (const trace::ThreadId thread : chunk.thread) require(std::to_underlying(thread) < all.threads.size());
    for (const trace::PoolId pool : chunk.tables.free.pool) require(std::to_underlying(pool) < all.pools.size());
    for (const trace::SiteId site : chunk.tables.oom.site)
      require(std::to_underlying(all.sites[std::to_underlying(site)].pool) < all.pools.size());
    for (const trace::StringId name : chunk.tables.mark.name) require(std::to_underlying(name) < all.strings.size());
    for (const std::uint64_t alloc : chunk.tables.free.alloc) require(alloc == trace::kNone || alloc < reader->allocs());
    require(chunk.first_alloc + chunk.tables.alloc.size() <= reader->allocs());
  }
  static std::FILE* nowhere = std::fopen("/dev/null", "w");
  const Status status = trace::dump(*reader, {.jsonl = true}, nowhere);
  require(status.has_value() || !status.error().message.empty());
}

// A trace of our own writer is whole, whatever it was made from.
inline void require_whole(const std::string& path) {
  const auto reader = trace::Reader::open(path);
  require(reader.has_value() && reader->damage().message.empty());
  trace::Chunk chunk;
  for (std::size_t i = 0; i < reader->chunks(); ++i) require(reader->read(i, chunk).has_value());
}

}  // namespace vramscope::fuzz
