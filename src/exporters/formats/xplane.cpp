// XPlane: the events that TensorFlow's profiler writes for each allocation and free, so that XProf's memory profile shows a
// recording.
#include <map>

#include "analyze/absent.h"
#include "analyze/block_rows.h"
#include "exporters/format.h"
#include "exporters/wire.h"

namespace vramscope::exporters::xplane {

extern const Format kFormat;

namespace {

// Fields of XSpace, XPlane, XLine, XEvent and XStat.
constexpr std::uint32_t kPlane = 1, kHost = 4;
constexpr std::uint32_t kPlaneId = 1, kPlaneName = 2, kLine = 3, kEventNames = 4, kStatNames = 5;
constexpr std::uint32_t kLineId = 1, kLineName = 2, kLineTime = 3, kLineEvent = 4;
constexpr std::uint32_t kEventName = 1, kEventOffset = 2, kEventStat = 4;
constexpr std::uint32_t kStatName = 1, kStatDouble = 2, kStatInteger = 4, kStatRef = 7;
constexpr std::uint64_t kAllocation = 1, kDeallocation = 2;

class Plane {
 public:
  Plane(const Request& request) : engine_(request.engine), rows_(request.engine) {}

  Message message() {
    const auto places = engine_.places();
    std::vector<Totals> totals(engine_.pool_names().size());
    Message line;
    line.number(kLineId, 1).text(kLineName, "memory").number(kLineTime, engine_.overview().start_realtime_us * 1000);
    rows_.each_event([&](analyze::Moment, const analyze::RowEvent& event) {
      const analyze::BlockRow block = rows_.row(event.block);
      if (!places[block.place].driver && block.pool < totals.size())
        line.message(kLineEvent, one(event, block, totals[block.pool], places[block.place].limit));
      return true;
    });
    Message plane;
    plane.number(kPlaneId, 1).text(kPlaneName, "/host:CPU").message(kLine, line);
    plane.message(kEventNames, entry(kAllocation, "MemoryAllocation"))
        .message(kEventNames, entry(kDeallocation, "MemoryDeallocation"));
    for (const auto& [name, id] : names_) plane.message(kStatNames, entry(id, name));
    return plane;
  }

 private:
  struct Totals {
    std::uint64_t live = 0, peak = 0;
  };

  Message one(const analyze::RowEvent& event, const analyze::BlockRow& block, Totals& totals, std::uint64_t limit) {
    totals.live += event.is_free ? -block.granted : block.granted;
    totals.peak = std::max(totals.peak, totals.live);
    Message out;
    out.number(kEventName, event.is_free ? kDeallocation : kAllocation).number(kEventOffset, event.time_us * 1'000'000);
    text(out, "allocator_name", block.texts->pool);
    number(out, "bytes_reserved", 0);
    number(out, "bytes_allocated", totals.live);
    number(out, "bytes_available", limit > totals.live ? limit - totals.live : 0);
    out.message(kEventStat, Message().number(kStatName, name("fragmentation")).real(kStatDouble, 0));
    number(out, "peak_bytes_in_use", totals.peak);
    number(out, "requested_bytes", block.requested);
    number(out, "allocation_bytes", block.granted);
    number(out, "addr", block.address);
    if (event.is_free) return out;
    text(out, "tf_op", block.texts->op);
    text(out, "region_type", block.texts->region);
    text(out, "shape", block.texts->shape);
    number(out, "id", static_cast<std::uint64_t>(block.step));
    return out;
  }

  std::uint64_t name(const std::string& text) { return names_.try_emplace(text, names_.size() + 1).first->second; }
  void number(Message& event, const std::string& key, std::uint64_t value) {
    event.message(kEventStat, Message().number(kStatName, name(key)).number(kStatInteger, value));
  }
  // Texts are stored once, as the names of further statistics.
  void text(Message& event, const std::string& key, const std::string& value) {
    if (!value.empty()) event.message(kEventStat, Message().number(kStatName, name(key)).number(kStatRef, name(value)));
  }
  static Message entry(std::uint64_t id, const std::string& name) {
    return Message().number(1, id).message(2, Message().number(1, id).text(2, name));
  }

  const analyze::Engine& engine_;
  analyze::BlockRows rows_;
  std::map<std::string, std::uint64_t> names_;
};

Status write(const Request& request, Output& out) {
  if (request.engine.main_place() < 0) return fail(std::string(analyze::kNoAllocations));
  out.write(Message().message(kPlane, Plane(request).message()).text(kHost, "vramscope").bytes());
  return {};
}

}  // namespace

const Format kFormat{
    .name = "xplane", .extension = ".xplane.pb", .opens_in = "XProf (memory profile)", .binary = true, .write = write};

}  // namespace vramscope::exporters::xplane
