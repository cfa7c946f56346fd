// The trace as columns: one row for each allocation, one for each event, and small tables for everything else.
//
// Everything is part of the index; dictionaries come from the trace's reader. Values that were read from a file are checked
// before anything is done with them (index_check.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/index_file.h"
#include "trace/reader.h"

namespace vramscope::analyze {

inline constexpr std::uint32_t kNone32 = ~std::uint32_t{0};

// How a category is known, from the weakest to the strongest evidence.
enum class Known : std::uint8_t { unknown = 0, inferred = 1, named = 2, reported = 3 };

// What the program was doing when a block was born, as far as its op name or a mark shows.
enum class Stage : std::uint8_t {
  other = 0,
  input,
  forward,
  backward,
  optimizer,
  save,
  evaluate,
  build,
  trace,
  compile,
  import_
};
inline constexpr std::size_t kStages = 11;
std::string_view name_of(Stage stage);
std::string_view name_of(Known known);

// Everything about a block that repeats: one for each distinct (site, granted).
struct Kind {
  std::uint64_t requested = 0, granted = 0;
  std::uint32_t site = 0, pool = 0;
  std::uint32_t layer = 0, line = 0;  // names()
  std::uint8_t category = 0;          // from its name; trace::Category
  std::uint8_t stage = 0;             // from its name
  std::uint8_t unread = 0;            // 1: by its graph, no op of the backward pass reads the op's result
  std::uint8_t kept_as = 0;           // what its blocks are if a variable takes them over; trace::Category
  std::uint32_t variable = 0;         // names(): the variable that its op assigns to
};

// What differs between blocks of one kind, in 32 bits: layer 20, category 4, known 2, stage 4.
struct Attributes {
  std::uint32_t bits = 0;
  static Attributes of(std::uint32_t layer, trace::Category category, Known known, Stage stage) {
    return {(layer & 0xfffffu) | (static_cast<std::uint32_t>(category) & 15u) << 20 | static_cast<std::uint32_t>(known) << 24 |
            static_cast<std::uint32_t>(stage) << 26};
  }
  std::uint32_t layer() const { return bits & 0xfffffu; }
  trace::Category category() const { return static_cast<trace::Category>(bits >> 20 & 15u); }
  Known known() const { return static_cast<Known>(bits >> 24 & 3u); }
  Stage stage() const { return static_cast<Stage>(bits >> 26 & 15u); }
};

struct ChunkRow {
  std::uint64_t first_event = 0, events = 0;
  std::uint64_t base_us = 0;   // time = max(floor, base + (tick << shift))
  std::uint64_t floor_us = 0;  // no event is earlier than those before it
  std::uint64_t last_us = 0;
  std::uint32_t shift = 0;
  std::uint32_t lost = 0;  // 1: the chunk could not be read
};

template <typename Row>
struct Stamped {
  std::uint64_t pos = 0;  // events before it
  std::uint64_t time_us = 0;
  std::uint32_t thread = 0;
  Row row;
};

// StepRow::open: the end was not reported, so the step runs to the end of the recording, including what the program frees at
// exit.
inline constexpr std::uint32_t kCutShort = 1;  // it began but did not end
inline constexpr std::uint32_t kLastOne = 2;   // the last of steps that run until the next one begins
struct StepRow {
  std::int64_t number = 0, epoch = 0;
  std::uint64_t begin = 0, end = 0;  // moments
  std::uint64_t begin_us = 0, end_us = 0;
  std::uint32_t kind = 0;      // names()
  std::uint32_t batches = 1;   // per step (steps_per_execution); 0: several, their number is unknown
  std::uint32_t open = 0;      // kCutShort, kLastOne
  std::uint32_t retraced = 0;  // a function was traced or compiled in it
};

struct TaggedRow {
  std::uint32_t alloc = 0;
  std::uint32_t name = 0;  // trace string
};

// Blocks that most questions cannot tell apart: one kind with the same attributes. Counted at every kCohortBlock-th allocation,
// so that a sum over any range of allocations reads two rows and scans only the rest.
struct Cohort {
  std::uint32_t kind = 0, attributes = 0;
  std::uint32_t example = 0;  // its first allocation
};
inline constexpr std::uint64_t kCohortBlock = 1u << 17;

// A region that is held when the trace ends, and the moment at which a block in it was last freed (0 = never).
struct RegionUse {
  std::uint64_t address = 0, left = 0;
};

// Running figures of a set of blocks (tally.h).
struct Held {
  Bytes peak = 0, end = 0;
  Bytes requested_peak = 0, requested_end = 0;
  Bytes largest = 0;
  std::uint64_t allocs = 0, frees = 0;
};
struct HeldByOwner {
  std::uint64_t owner = 0;  // trace string
  Held held;
};

// Numbers that fit nowhere else.
struct Counts {
  std::uint64_t events = 0, allocs = 0, frees = 0, unmatched_frees = 0, given_again = 0, lost_chunks = 0, tags_unmatched = 0;
  std::uint64_t steps_source = 0;  // 0 none, 1 reported, 2 inferred
  std::uint64_t steps_reason = 0;  // names(): why none
  std::uint64_t main_place = 0;
};

// A text of the trace; "" if it has no such id.
std::string_view text_of(const trace::Dictionaries& dictionaries, trace::StringId id);

// How many blocks and events questions have looked at: a measure of work that is the same on every machine. Thread-safe.
class WorkCount {
 public:
  WorkCount() = default;
  WorkCount(WorkCount&& other) noexcept : count_(other.total()) {}
  void add(std::uint64_t looks) { count_.fetch_add(looks, std::memory_order_relaxed); }
  std::uint64_t total() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_ = 0;
};

struct SettingText {
  std::string_view key, value;
};

class Store {
 public:
  // Spans stay valid while the object lives.
  Store(Index index, trace::Reader reader);
  // A store under construction, whose spans the caller sets.
  explicit Store(trace::Reader reader) : reader_(std::move(reader)) {}
  Store(Store&&) = default;
  trace::Reader release() && { return std::move(reader_); }

  std::uint64_t events() const { return ref.size(); }
  std::uint64_t allocs() const { return birth.size(); }
  std::uint64_t events_read() const;  // without those of chunks that could not be read
  const trace::Dictionaries& dictionaries() const { return reader_.dictionaries(); }
  const trace::Reader& reader() const { return reader_; }
  std::string_view text(trace::StringId id) const { return text_of(dictionaries(), id); }
  std::string_view name(std::uint32_t id) const;  // the index's own texts: layers, lines
  std::size_t names() const { return name_offsets.empty() ? 0 : name_offsets.size() - 1; }
  const Kind& kind_of(std::uint64_t alloc) const {
    std::uint32_t k = kind[alloc];
    return k < kinds.size() ? kinds[k] : kNoKind;
  }
  Attributes attributes_of(std::uint64_t alloc) const { return {attributes[alloc]}; }
  const trace::Site& site_of(const Kind& k) const;

  std::uint64_t time_of_event(std::uint64_t pos) const;
  std::uint64_t time_of(Moment at) const;  // of the last event before it; 0 for the start
  Moment moment_at(std::uint64_t time_us) const;
  std::uint64_t duration_us() const { return chunks.empty() ? 0 : chunks.back().last_us; }

  // Columns by allocation.
  Column<std::uint32_t> birth, death, kind, attributes;  // birth and death are event positions; kNone32 = never
  Column<std::uint64_t> address;
  // Columns by event: ref = allocation * 2 + (1 for a free), kNone32 for other kinds; tick = time in its chunk.
  Column<std::uint32_t> ref, tick;
  std::span<const ChunkRow> chunks;
  // Lifetime classes: allocations by floor(log2(lifetime)), each class in order of birth; the last class never ended.
  Column<std::uint32_t> class_order;
  std::span<const std::uint64_t> class_start;  // kClasses + 1
  std::span<const Kind> kinds;
  std::span<const Stamped<trace::Region>> regions;
  std::span<const Stamped<trace::Mark>> marks;
  std::span<const Stamped<trace::Tag>> tags;
  std::span<const Stamped<trace::Stats>> stats;
  std::span<const Stamped<trace::Oom>> ooms;
  std::span<const Stamped<trace::DeviceSample>> device_samples;
  std::span<const Stamped<trace::HostSample>> host_samples;
  std::vector<SettingText> settings;  // the last value of each, by key
  std::span<const Stamped<trace::Lost>> lost;
  std::span<const Stamped<trace::Context>> contexts;
  std::span<const Stamped<trace::Totals>> totals;
  std::span<const Stamped<trace::Omitted>> omitted;
  std::span<const trace::Report> reports;  // of the Python side, in the order of the trace
  std::span<const StepRow> steps;
  std::span<const RegionUse> region_use;  // by address
  std::span<const Cohort> cohorts;
  std::span<const std::uint32_t> cohort_counts;  // [block][cohort]: allocations before the block
  std::span<const TaggedRow> tagged;             // by allocation
  std::span<const Held> pool_tallies;            // by pool
  std::span<const HeldByOwner> owner_tallies;
  Held driver_tally;
  std::span<const std::uint64_t> name_offsets;
  std::span<const char> name_bytes;
  Counts counts;
  mutable WorkCount work;
  const Index& index() const { return index_; }
  // Events that were recorded but are not in the trace, except those left out on purpose.
  std::uint64_t lost_events() const;

  static const Kind kNoKind;

 private:
  Index index_;
  trace::Reader reader_;
};

inline constexpr std::size_t kClasses = 33;  // 2^0 .. 2^31, and one for blocks that never ended

}  // namespace vramscope::analyze
