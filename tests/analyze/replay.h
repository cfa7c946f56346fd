// The slow and obvious way to every answer: replay all events with maps. The engine must agree with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace vramscope::test {

struct ReplayBlock {
  std::uint64_t id, birth, death, address, granted, requested;  // birth, death: event positions; death = kNone: never
  std::uint32_t pool;
  std::string op;
};

struct Replay {
  std::vector<ReplayBlock> blocks;
  std::vector<std::uint64_t> time_us;  // by event, monotone
  std::vector<std::int64_t> change;    // by event, of pool 0
  explicit Replay(const trace::Reader& reader) {
    const auto& words = reader.dictionaries();
    std::uint64_t pos = 0, now = 0;
    for (std::size_t c = 0; c < reader.chunks(); ++c) {
      auto chunk = reader.chunk(c).value();
      std::size_t a = 0, f = 0;
      for (std::size_t i = 0; i < chunk.kind.size(); ++i, ++pos) {
        now = std::max(now, chunk.time_us[i]);
        time_us.push_back(now);
        change.push_back(0);
        if (chunk.kind[i] == trace::EventKind::alloc) {
          auto row = chunk.tables.alloc.row(a++);
          const auto& site = words.sites[static_cast<std::size_t>(row.site)];
          blocks.push_back({blocks.size(), pos, trace::kNone, row.address, row.granted, site.requested,
                            static_cast<std::uint32_t>(site.pool), words.strings[static_cast<std::size_t>(site.op)]});
          if (blocks.back().pool == 0) change.back() = static_cast<std::int64_t>(row.granted);
        } else if (chunk.kind[i] == trace::EventKind::free_) {
          auto row = chunk.tables.free.row(f++);
          if (row.alloc == trace::kNone) continue;
          blocks[row.alloc].death = pos;
          if (blocks[row.alloc].pool == 0) change.back() = -static_cast<std::int64_t>(blocks[row.alloc].granted);
        }
      }
    }
  }
  bool lives(const ReplayBlock& b, std::uint64_t moment) const {
    return b.birth < moment && (b.death == trace::kNone || b.death >= moment);
  }
  std::uint64_t total(std::uint64_t moment) const {
    std::int64_t sum = 0;
    for (std::uint64_t i = 0; i < moment; ++i) sum += change[i];
    return static_cast<std::uint64_t>(sum);
  }
};

}  // namespace vramscope::test
