// All blocks of a trace, one after another, with their texts: for exporters, which need every block and cannot afford to build
// its texts each time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/api.h"

namespace vramscope::analyze {

// What blocks of one kind have in common.
struct KindTexts {
  std::string op, region, dtype, shape, line, owner, pool;
};

// Views are valid as long as the BlockRows and the engine that they came from.
struct BlockRow {
  std::uint64_t id = 0, address = 0;
  Bytes requested = 0, granted = 0;
  Moment birth = 0, death = kNever;  // as in Block
  std::uint64_t birth_us = 0, death_us = kNever;
  std::uint32_t pool = 0;   // index into pool_names()
  std::uint32_t place = 0;  // index into places()
  std::uint64_t stream = 0;
  std::uint32_t stack = 0;
  std::int64_t step = 0;   // 0 = outside all steps
  std::uint32_t kind = 0;  // blocks with the same number have the same texts
  std::string_view category, known, layer, phase, name;
  const KindTexts* texts = nullptr;
};

struct RowEvent {
  std::uint64_t block = 0;
  std::uint64_t time_us = 0;
  bool is_free = false;
};

// A region that a pool took from the level below or returned, in order of the moments at which it happened.
struct RegionRow {
  Moment at = 0;
  std::uint64_t time_us = 0;
  std::uint32_t pool = 0;
  std::uint64_t address = 0;
  Bytes bytes = 0;
  bool returned = false;
};

// Used by one thread. The engine must outlive it.
class BlockRows {
 public:
  explicit BlockRows(const Engine& engine);
  BlockRows(const BlockRows&) = delete;
  BlockRows& operator=(const BlockRows&) = delete;
  ~BlockRows();

  std::uint64_t size() const;             // block ids are below this
  bool recorded(std::uint64_t id) const;  // false: its event was lost
  BlockRow row(std::uint64_t id);
  // Calls f(RowEvent) for each allocation and free, in order. f returns whether to continue.
  template <typename F>
  void each_event(F&& f) const {
    for (Moment at = 1; at <= moments(); ++at) {
      RowEvent event;
      if (event_before(at, event) && !f(at, event)) return;
    }
  }
  std::vector<RegionRow> regions() const;
  // -1: the pool belongs to no place.
  int place_of_pool(std::uint32_t pool) const;
  // The framework of a place's pools: tensorflow, pytorch, jax, cuda, or none.
  std::string_view framework_of(int place) const;

 private:
  Moment moments() const;
  bool event_before(Moment at, RowEvent& event) const;

  const Engine& engine_;
  std::vector<int> place_of_pool_;
  std::vector<std::unique_ptr<KindTexts>> texts_;  // by kind, made on first use
};

}  // namespace vramscope::analyze
