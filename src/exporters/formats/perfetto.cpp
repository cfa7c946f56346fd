// Perfetto's protobuf: counters of live bytes by category for each place, steps and phases as slices, failed requests as
// instants, the largest blocks, and what was live at the instant as samples with call stacks, which the UI shows as a flame
// graph.
#include <fmt/format.h>

#include <map>

#include "exporters/format.h"
#include "exporters/stack_sums.h"
#include "exporters/timeline.h"
#include "exporters/wire.h"

namespace vramscope::exporters::perfetto {

extern const Format kFormat;

namespace {

// Fields of perfetto.protos.TracePacket.
enum Packet : std::uint32_t {
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInterned = 12,
  kSequenceFlags = 13,
  kTrack = 60
};
// Fields of TrackEvent.
enum Event : std::uint32_t {
  kAnnotation = 4,
  kType = 9,
  kTrackUuid = 11,
  kCategory = 22,
  kName = 23,
  kCounterValue = 30,
  kStackId = 56,
  kStackWeight = 57
};
enum EventType : std::uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

constexpr std::uint64_t kUnitBytes = 3, kExplicitOrder = 3, kNeverMerge = 2;
constexpr std::uint64_t kProcessTrack = 1;

class Packets {
 public:
  explicit Packets(Output& out) : out_(out) {}

  void write(std::uint64_t time_us, std::uint32_t field, const Message& payload) {
    Message packet;
    packet.number(kTimestamp, time_us * 1000).number(kSequence, 1).number(kSequenceFlags, first_ ? 1 : 2);
    packet.message(field, payload);
    first_ = false;
    out_.write(Message().message(1, packet).bytes());
  }
  // Returns the new track.
  std::uint64_t track(std::uint64_t parent, std::string_view name, const Message& more = {}) {
    Message descriptor;
    ++tracks_;
    descriptor.number(1, tracks_).text(2, name).number(5, parent).number(12, tracks_);
    write(0, kTrack, descriptor.fields(more));
    return tracks_;
  }
  void process(std::int64_t rank, const std::string& name) {
    const Message process = Message().integer(1, rank + 1).text(6, name);
    write(0, kTrack, Message().number(1, kProcessTrack).message(3, process).number(11, kExplicitOrder));
  }
  void counter(std::uint64_t track, std::uint64_t time_us, std::uint64_t value) {
    write(time_us, kTrackEvent, Message().number(kType, kCounter).number(kTrackUuid, track).number(kCounterValue, value));
  }
  void slice(std::uint64_t track, std::string_view category, std::string_view name, std::uint64_t from, std::uint64_t to,
             std::uint64_t bytes) {
    Message begin = Message().number(kType, kBegin).number(kTrackUuid, track).text(kCategory, category).text(kName, name);
    write(from, kTrackEvent, begin.message(kAnnotation, annotation("bytes", bytes)));
    write(to, kTrackEvent, Message().number(kType, kEnd).number(kTrackUuid, track));
  }
  static Message annotation(std::string_view name, std::uint64_t value) { return Message().text(10, name).number(3, value); }
  static Message annotation(std::string_view name, std::string_view value) { return Message().text(10, name).text(6, value); }

 private:
  Output& out_;
  std::uint64_t tracks_ = kProcessTrack;
  bool first_ = true;
};

void write_counters(const Timeline& timeline, Packets& packets) {
  std::uint64_t number = 0;
  for (const Timeline::Track& track : timeline.places) {
    const std::string share = fmt::format("place {}", ++number);
    const Message bytes = Message().message(8, Message().number(3, kUnitBytes).text(7, share));
    const std::uint64_t group = packets.track(kProcessTrack, track.place.name + " memory", Message().number(11, kExplicitOrder));
    const std::uint64_t total = packets.track(group, track.place.name + " live", bytes);
    for (const std::size_t column : track.columns)
      packets.counter(total, track.stacked.time_us[column], track.stacked.high[column]);
    for (std::size_t i = 0; i < track.stacked.groups.size(); ++i) {
      if (!track.used[i]) continue;
      const std::uint64_t category = packets.track(group, track.stacked.groups[i], bytes);
      for (const std::size_t column : track.columns)
        packets.counter(category, track.stacked.time_us[column], track.stacked.peak[i][column]);
    }
  }
  std::map<std::int64_t, std::uint64_t> tracks;
  for (const analyze::Sample& sample : timeline.samples) {
    std::uint64_t& track = tracks[sample.device];
    if (track == 0) track = packets.track(kProcessTrack, track_of(sample), Message().message(8, Message().number(3, kUnitBytes)));
    packets.counter(track, sample.time_us, sample.used);
  }
}

void write_slices(const Timeline& timeline, Packets& packets) {
  std::map<std::string, std::uint64_t> kinds;
  for (const analyze::Step& step : timeline.steps) {
    std::uint64_t& track = kinds[step.kind];
    if (track == 0) track = packets.track(kProcessTrack, step.kind + " steps");
    packets.slice(track, "step", fmt::format("{} {}", step.kind, step.number), step.begin_us, step.end_us, step.peak);
  }
  // Phases and blocks overlap: each gets a track of its own, which the UI packs.
  const Message apart = Message().number(15, kNeverMerge);
  for (const analyze::Phase& phase : timeline.phases)
    packets.slice(packets.track(kProcessTrack, phase.name, apart), "phase", phase.name, phase.begin_us, phase.end_us, phase.peak);
  if (!timeline.ooms.empty()) {
    const std::uint64_t track = packets.track(kProcessTrack, "out of memory");
    for (const analyze::OomEvent& oom : timeline.ooms) {
      Message event =
          Message().number(kType, kInstant).number(kTrackUuid, track).text(kCategory, "oom").text(kName, "out of memory");
      event.message(kAnnotation, Packets::annotation("requested", oom.requested));
      event.message(kAnnotation, Packets::annotation("live", oom.live));
      event.message(kAnnotation, Packets::annotation("why", oom.sentence));
      packets.write(oom.time_us, kTrackEvent, event);
    }
  }
  if (timeline.largest.empty()) return;
  const std::uint64_t blocks = packets.track(kProcessTrack, "largest blocks");
  for (const analyze::Block& block : timeline.largest)
    packets.slice(packets.track(blocks, timeline.title(block), apart), "block", timeline.title(block), block.birth_us,
                  timeline.end_of(block), block.granted);
}

// One instant per stack, weighted with its live bytes.
void write_stacks(const StackSums& sums, const std::string& at, Packets& packets) {
  const std::uint64_t track = packets.track(kProcessTrack, fmt::format("{}: live at {}, by call stack", sums.place, at));
  Message interned;  // ids start at 1; each frame has a function name of its own
  for (std::size_t i = 0; i < sums.frames.size(); ++i) {
    const StackFrame& frame = sums.frames[i];
    interned.message(5, Message().number(1, i + 1).text(2, frame.function));
    interned.message(18, Message().number(1, i + 1).text(2, frame.file));
    interned.message(6, Message().number(1, i + 1).number(2, i + 1).number(5, i + 1).number(6, frame.line));
  }
  for (std::size_t i = 0; i < sums.sums.size(); ++i) {
    Message stack = Message().number(1, i + 1);
    for (auto frame = sums.sums[i].frames.rbegin(); frame != sums.sums[i].frames.rend(); ++frame) stack.number(2, *frame + 1);
    interned.message(7, stack);
  }
  packets.write(sums.at_us, kInterned, interned);
  for (std::size_t i = 0; i < sums.sums.size(); ++i) {
    if (sums.sums[i].live_bytes == 0) continue;
    Message event = Message().number(kType, kInstant).number(kTrackUuid, track).text(kCategory, "live");
    event.text(kName, sums.sums[i].category).number(kStackId, i + 1);
    event.real(kStackWeight, static_cast<double>(sums.sums[i].live_bytes));
    packets.write(sums.at_us, kTrackEvent, event.message(kAnnotation, Packets::annotation("bytes", sums.sums[i].live_bytes)));
  }
}

Status write(const Request& request, Output& out) {
  const auto timeline = timeline_of(request);
  if (!timeline) return std::unexpected(timeline.error());
  analyze::BlockRows rows(request.engine);
  const auto sums = stack_sums(request, rows);
  if (!sums) return std::unexpected(sums.error());
  Packets packets(out);
  packets.process(timeline->rank, timeline->title());
  write_counters(*timeline, packets);
  write_slices(*timeline, packets);
  write_stacks(*sums, request.at, packets);
  return {};
}

}  // namespace

const Format kFormat{.name = "perfetto",
                     .extension = ".pftrace",
                     .opens_in = "ui.perfetto.dev",
                     .binary = true,
                     .takes = kTakesPlace | kTakesInstant,
                     .write = write};

}  // namespace vramscope::exporters::perfetto
