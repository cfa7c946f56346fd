// Chrome trace JSON: a counter of live bytes by category for each place, steps, phases, failed requests, samples of the device
// and the largest blocks. With --full, every allocation and free as a "[memory]" event, as PyTorch's profiler writes them.
#include <fmt/format.h>

#include "analyze/block_rows.h"
#include "exporters/format.h"
#include "exporters/timeline.h"
#include "support/json_writer.h"

namespace vramscope::exporters::chrome {

extern const Format kFormat;

namespace {

constexpr int kStepsThread = 1, kPhasesThread = 2, kMemoryThread = 3;

class Events {
 public:
  Events(Output& out, std::int64_t process) : out_(out), process_(process) {}

  // Opens an event; the caller adds the rest and calls end().
  support::JsonWriter& begin(std::string_view phase, std::string_view name, std::uint64_t time_us, int thread = 0) {
    json_.clear();
    json_.begin_object()
        .member("ph", phase)
        .member("name", name)
        .member("ts", time_us)
        .member("pid", process_)
        .member("tid", thread);
    return json_;
  }
  void end() {
    json_.end_object();
    out_.write(first_ ? "\n" : ",\n");
    out_.write(json_.text());
    first_ = false;
  }
  void named(std::string_view what, std::string_view name, int thread = 0) {
    begin("M", what, 0, thread).key("args").begin_object().member("name", name).end_object();
    end();
  }

 private:
  Output& out_;
  std::int64_t process_;
  support::JsonWriter json_{false};
  bool first_ = true;
};

void write_counters(const Timeline& timeline, Events& events) {
  for (const Timeline::Track& track : timeline.places)
    for (const std::size_t column : track.columns) {
      auto& json = events.begin("C", track.place.name, track.stacked.time_us[column]).key("args").begin_object();
      for (std::size_t group = 0; group < track.stacked.groups.size(); ++group)
        if (track.used[group]) json.member(track.stacked.groups[group], track.stacked.peak[group][column]);
      json.end_object();
      events.end();
    }
  for (const analyze::Sample& sample : timeline.samples) {
    events.begin("C", track_of(sample), sample.time_us).key("args").begin_object().member("bytes", sample.used).end_object();
    events.end();
  }
}

void write_slices(const Timeline& timeline, Events& events) {
  for (const analyze::Step& step : timeline.steps) {
    auto& json = events.begin("X", fmt::format("{} {}", step.kind, step.number), step.begin_us, kStepsThread);
    json.member("dur", step.end_us - step.begin_us).member("cat", "step").key("args").begin_object();
    json.member("peak", step.peak).member("growth", step.growth).member("allocated", step.allocated).end_object();
    events.end();
  }
  // Phases overlap, which slices of a thread must not.
  std::uint64_t id = 0;
  const auto interval = [&](std::string_view category, const std::string& name, std::uint64_t from, std::uint64_t to,
                            std::uint64_t bytes) {
    events.begin("b", name, from, kPhasesThread).member("cat", category).member("id", ++id);
    events.end();
    auto& json = events.begin("e", name, to, kPhasesThread).member("cat", category).member("id", id);
    json.key("args").begin_object().member("bytes", bytes).end_object();
    events.end();
  };
  for (const analyze::Phase& phase : timeline.phases) interval("phase", phase.name, phase.begin_us, phase.end_us, phase.peak);
  for (const analyze::Block& block : timeline.largest)
    interval("block", timeline.title(block), block.birth_us, timeline.end_of(block), block.granted);
  for (const analyze::OomEvent& oom : timeline.ooms) {
    auto& json = events.begin("i", "out of memory", oom.time_us, kStepsThread).member("s", "g").key("args").begin_object();
    json.member("requested", oom.requested).member("live", oom.live).member("limit", oom.limit).member("op", oom.op);
    json.member("why", oom.sentence).end_object();
    events.end();
  }
}

// The names and device types of PyTorch: 0 is the CPU, 1 is CUDA.
void write_memory_events(const Request& request, Events& events) {
  const auto places = request.engine.places();
  analyze::BlockRows rows(request.engine);
  std::vector<std::uint64_t> live(places.size());
  rows.each_event([&](analyze::Moment, const analyze::RowEvent& event) {
    const analyze::BlockRow block = rows.row(event.block);
    const analyze::Place& place = places[block.place];
    if (place.driver) return true;
    live[block.place] += event.is_free ? -block.granted : block.granted;
    auto& json = events.begin("i", "[memory]", event.time_us, kMemoryThread).member("s", "t").member("cat", "cpu_instant_event");
    json.key("args").begin_object().member("Total Allocated", live[block.place]);
    json.member("Bytes", event.is_free ? -static_cast<std::int64_t>(block.granted) : static_cast<std::int64_t>(block.granted));
    json.member("Addr", block.address).member("Device Id", place.device).member("Device Type", place.device < 0 ? 0 : 1);
    json.end_object();
    events.end();
    return true;
  });
}

Status write(const Request& request, Output& out) {
  const auto timeline = timeline_of(request);
  if (!timeline) return std::unexpected(timeline.error());
  out.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  Events events(out, timeline->rank);
  events.named("process_name", timeline->title());
  events.named("thread_name", "steps", kStepsThread);
  events.named("thread_name", "phases and largest blocks", kPhasesThread);
  write_counters(*timeline, events);
  write_slices(*timeline, events);
  if (request.full) write_memory_events(request, events);
  out.write(fmt::format("\n],\"otherData\":{{\"writer\":\"vramscope {}\"}}}}\n", VRAMSCOPE_VERSION));
  return {};
}

}  // namespace

const Format kFormat{.name = "chrome", .extension = ".json", .opens_in = "chrome://tracing, Perfetto", .write = write};

}  // namespace vramscope::exporters::chrome
