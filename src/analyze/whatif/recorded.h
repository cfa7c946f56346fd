// A trace as the events of one pool, for replays and forecasts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/attribute/categories.h"
#include "analyze/query/filter.h"
#include "analyze/query/state.h"
#include "whatif/event.h"
#include "whatif/forecast/forecast.h"
#include "whatif/replay/replay.h"

namespace vramscope::analyze {

struct RecordedPool {
  std::uint32_t pool = 0;
  trace::Framework framework{};
  bool on_host = false;
  bool of_objects = false;  // arrays were recorded, and their allocator was not
  whatif::Events events;
  std::vector<std::uint32_t> allocs;      // by block: its allocation in the trace; kNone32: it is not in the trace
  std::vector<Shown> added;               // by block, as far as there are blocks that are not in the trace
  std::vector<std::uint32_t> sections;    // by block: the number of its step, 0 before the first
  std::uint32_t settled = 2;              // the first section that begins with all parameters and their optimizer state
  whatif::Scenario scenario;              // the allocator and settings of the recording
  std::string settings;                   // in words
  std::vector<whatif::DeviceCall> calls;  // that the recording contains
  std::optional<Bytes> reserved_peak;     // as recorded
  Bytes card = 0;                         // memory of the device; 0 = not recorded
  Bytes before = 0;                       // in use when the recording started, and not among the events
  Bytes quantum = 512;
  std::vector<std::string> assumptions;  // sentences
};

// A part of what a place recorded.
struct RecordedPart {
  int place = -1;
  std::string_view where = {};
  std::optional<std::uint32_t> pool = {};  // nullopt: that with the highest peak
  Moment until = kNever;                   // events from here on are left out
};
// An error if there is no such pool.
Result<RecordedPool> recorded_pool(const Engine::State& state, const RecordedPart& part);

Shown category_of(const Store& store, const RecordedPool& recorded, std::uint32_t block);

// Positions of the first and behind the last event of a section; equal if it has none.
struct EventRange {
  std::size_t first = 0, last = 0;
};
EventRange events_of_section(const RecordedPool& recorded, std::uint32_t section);

// The events from a position on; what is live there comes first, in the order of its allocation.
RecordedPool from_event(const RecordedPool& recorded, std::size_t position);

// The replay of a BFC allocator. `collection`: a pool on a device returns regions that no block needs before it fails.
void set_bfc(const Store& store, RecordedPool& pool, bool collection);
// Ops of a traced graph run in an order that differs from process to process.
bool has_traced_graph(const Store& store);

// What a question answers whose replays have exhausted their whatif::Work.
std::unexpected<Error> too_much_work(std::string_view advice = "choose fewer blocks with --where");

// Requests with keys that are the same in every recording of the program.
std::vector<whatif::Request> requests_of(const Store& store, const RecordedPool& recorded);

}  // namespace vramscope::analyze
