// Chrome trace JSON: a counter of live bytes by category for each place, steps, phases, failed requests, samples of the device
// and the largest blocks. With --full, every allocation and free as a "[memory]" event, as PyTorch's profiler writes them.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>

#include "analyze/block_rows.h"
#include "exporters/format.h"
#include "exporters/timeline.h"
#include "support/json_writer.h"

namespace vramscope::exporters::chrome {

extern const Format kFormat;

namespace {

constexpr int kStepsThread = 1, kPhasesThread = 2, kMemoryThread = 3;

struct MemoryEvent {
  std::uint64_t time_us = 0, live = 0;
  std::int64_t bytes = 0;  // freed: negative
  std::uint64_t address = 0;
  std::int64_t device = -1;
};

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
  // The names and device types of PyTorch: 0 is the CPU, 1 is CUDA. There may be millions: no JsonWriter.
  void memory(const MemoryEvent& event) {
    fmt::format_to(std::back_inserter(out_.buffer()),
                   FMT_COMPILE("{}\n{{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":{},\"pid\":{},\"tid\":{},\"s\":\"t\","
                               "\"cat\":\"cpu_instant_event\",\"args\":{{\"Total Allocated\":{},\"Bytes\":{},\"Addr\":{},"
                               "\"Device Id\":{},\"Device Type\":{}}}}}"),
                   first_ ? "" : ",", event.time_us, process_, kMemoryThread, event.live, event.bytes, event.address,
                   event.device, event.device < 0 ? 0 : 1);
    first_ = false;
    out_.settle();
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

void write_memory_events(const Request& request, Events& events) {
  const auto places = request.engine.places();
  analyze::BlockRows rows(request.engine);
  std::vector<std::uint64_t> live(places.size());
  rows.each_event([&](analyze::Moment, const analyze::RowEvent& event) {
    const analyze::BlockRow block = rows.row(event.block);
    const analyze::Place& place = places[block.place];
    if (place.driver) return true;
    live[block.place] += event.is_free ? -block.granted : block.granted;
    const auto bytes = static_cast<std::int64_t>(block.granted);
    events.memory({.time_us = event.time_us,
                   .live = live[block.place],
                   .bytes = event.is_free ? -bytes : bytes,
                   .address = block.address,
                   .device = place.device});
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
  // As PyTorch's profiler writes the instant from which times count.
  out.write(fmt::format("\n],\"baseTimeNanoseconds\":{},\"otherData\":{{\"writer\":\"vramscope {}\"}}}}\n",
                        timeline->start_realtime_us * 1000, VRAMSCOPE_VERSION));
  return {};
}

}  // namespace

const Format kFormat{
    .name = "chrome", .extension = ".json", .opens_in = "chrome://tracing, Perfetto", .takes = kTakesEveryEvent, .write = write};

}  // namespace vramscope::exporters::chrome
