// XPlane: the events that TensorFlow's profiler writes for each allocation and free, so that XProf's memory profile shows a
// recording. A message begins with its length, and all events are in one: so they are encoded twice, first to be counted, and
// nothing is kept.
#include <array>
#include <map>
#include <vector>

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

// Statistics of an event, in the order of their names; their numbers begin with 1.
enum Stat : std::uint8_t {
  kAllocator = 1,
  kReserved,
  kAllocated,
  kAvailable,
  kFragmentation,
  kPeak,
  kRequested,
  kGranted,
  kAddress,
  kOp,
  kRegion,
  kShape,
  kStep,
};
constexpr std::array<std::string_view, kStep> kNames = {"allocator_name",
                                                        "bytes_reserved",
                                                        "bytes_allocated",
                                                        "bytes_available",
                                                        "fragmentation",
                                                        "peak_bytes_in_use",
                                                        "requested_bytes",
                                                        "allocation_bytes",
                                                        "addr",
                                                        "tf_op",
                                                        "region_type",
                                                        "shape",
                                                        "id"};

// The numbers of one event, encoded without any allocation.
class Numbers {
 public:
  void field(std::uint32_t number, std::uint64_t value) {
    put(number << 3);
    varint(value);
  }
  void stat(Stat name, std::uint64_t value) {
    put(kEventStat << 3 | 2);
    const std::size_t length = size_++;
    field(kStatName, name);
    field(kStatInteger, value);
    bytes_[length] = static_cast<char>(size_ - length - 1);
  }
  std::string_view bytes() const { return {bytes_.data(), size_}; }

 private:
  static constexpr std::size_t kField = 11, kStatBytes = 2 + 2 * kField;

  void put(std::uint32_t byte) { bytes_[size_++] = static_cast<char>(byte); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) put(static_cast<std::uint32_t>(value & 0x7f) | 0x80);
    put(static_cast<std::uint32_t>(value));
  }

  std::array<char, 2 * kField + kNames.size() * kStatBytes> bytes_;
  std::size_t size_ = 0;
};

class Plane {
 public:
  Plane(const Request& request, Output& out) : engine_(request.engine), rows_(request.engine), out_(out) {
    for (const std::string_view name : kNames) this->name(std::string(name));
    always_.message(kEventStat, Message().number(kStatName, kReserved).number(kStatInteger, 0));
    always_.message(kEventStat, Message().number(kStatName, kFragmentation).real(kStatDouble, 0));
  }

  void write() {
    std::uint64_t length = 0;
    each([&](std::string_view head, std::string_view texts, std::string_view numbers) {
      length += head.size() + texts.size() + numbers.size();
      return true;
    });
    const Message line =
        Message().number(kLineId, 1).text(kLineName, "memory").number(kLineTime, engine_.overview().start_realtime_us * 1000);
    const Message begin = Message().number(kPlaneId, 1).text(kPlaneName, "/host:CPU");
    const std::string line_head = head_of(kLine, line.bytes().size() + length);
    const Message names = all_names();
    out_.write(head_of(kPlane, begin.bytes().size() + line_head.size() + line.bytes().size() + length + names.bytes().size()));
    out_.write(begin.bytes());
    out_.write(line_head);
    out_.write(line.bytes());
    each([&](std::string_view head, std::string_view texts, std::string_view numbers) {
      for (const std::string_view part : {head, texts, numbers}) out_.buffer().append(part);
      out_.settle();
      return out_.good();
    });
    out_.write(names.bytes());
  }

 private:
  struct Totals {
    std::uint64_t live = 0, peak = 0;
  };
  // Of all blocks of a kind: the fields that their events have in common.
  struct Common {
    std::string alloc, free;
  };

  // Calls f with the parts of each event.
  template <typename F>
  void each(F&& f) {
    const auto places = engine_.places();
    std::vector<Totals> totals(engine_.pool_names().size());
    std::string head;
    rows_.each_event([&](analyze::Moment, const analyze::RowEvent& event) {
      const analyze::BlockRow block = rows_.row(event.block);
      if (places[block.place].driver || block.pool >= totals.size()) return true;
      const Common& common = common_of(block);
      const std::string_view texts = event.is_free ? common.free : common.alloc;
      const Numbers numbers = numbers_of(event, block, totals[block.pool], places[block.place].limit);
      head.clear();
      append_varint(head, kLineEvent << 3 | 2);
      append_varint(head, texts.size() + numbers.bytes().size());
      return f(head, texts, numbers.bytes());
    });
  }

  static Numbers numbers_of(const analyze::RowEvent& event, const analyze::BlockRow& block, Totals& totals, std::uint64_t limit) {
    totals.live += event.is_free ? -block.granted : block.granted;
    totals.peak = std::max(totals.peak, totals.live);
    Numbers out;
    out.field(kEventName, event.is_free ? kDeallocation : kAllocation);
    out.field(kEventOffset, event.time_us * 1'000'000);
    out.stat(kAllocated, totals.live);
    out.stat(kAvailable, limit > totals.live ? limit - totals.live : 0);
    out.stat(kPeak, totals.peak);
    out.stat(kRequested, block.requested);
    out.stat(kGranted, block.granted);
    out.stat(kAddress, block.address);
    if (!event.is_free) out.stat(kStep, static_cast<std::uint64_t>(block.step));
    return out;
  }

  const Common& common_of(const analyze::BlockRow& block) {
    if (block.kind >= common_.size()) common_.resize(block.kind + 1);
    Common& out = common_[block.kind];
    if (!out.free.empty()) return out;
    Message free = always_;
    text(free, kAllocator, block.texts->pool);
    Message alloc = free;
    text(alloc, kOp, block.texts->op);
    text(alloc, kRegion, block.texts->region);
    text(alloc, kShape, block.texts->shape);
    out = {alloc.bytes(), free.bytes()};
    return out;
  }

  // Texts are stored once, as the names of further statistics.
  void text(Message& event, Stat stat, const std::string& value) {
    if (!value.empty()) event.message(kEventStat, Message().number(kStatName, stat).number(kStatRef, name(value)));
  }
  std::uint64_t name(const std::string& text) { return names_.try_emplace(text, names_.size() + 1).first->second; }

  Message all_names() const {
    Message out;
    out.message(kEventNames, entry(kAllocation, "MemoryAllocation"))
        .message(kEventNames, entry(kDeallocation, "MemoryDeallocation"));
    for (const auto& [name, id] : names_) out.message(kStatNames, entry(id, name));
    return out;
  }
  static Message entry(std::uint64_t id, const std::string& name) {
    return Message().number(1, id).message(2, Message().number(1, id).text(2, name));
  }
  static std::string head_of(std::uint32_t field, std::uint64_t length) {
    std::string out;
    append_varint(out, std::uint64_t{field} << 3 | 2);
    append_varint(out, length);
    return out;
  }

  const analyze::Engine& engine_;
  analyze::BlockRows rows_;
  Output& out_;
  Message always_;  // statistics that are the same in every event
  std::vector<Common> common_;
  std::map<std::string, std::uint64_t> names_;
};

Status write(const Request& request, Output& out) {
  if (request.engine.main_place() < 0) return fail(std::string(analyze::kNoAllocations));
  Plane(request, out).write();
  out.write(Message().text(kHost, "vramscope").bytes());
  return {};
}

}  // namespace

const Format kFormat{
    .name = "xplane", .extension = ".xplane.pb", .opens_in = "XProf (memory profile)", .binary = true, .write = write};

}  // namespace vramscope::exporters::xplane
