// pprof, by the conventions of Go's heap profiles: allocated in total, and in use at the instant.
#include <map>

#include "exporters/format.h"
#include "exporters/stack_sums.h"
#include "exporters/wire.h"
#include "support/gzip.h"

namespace vramscope::exporters::pprof {

extern const Format kFormat;

namespace {

// Fields of perftools.profiles.Profile.
enum Field : std::uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kDefaultSampleType = 14,
};

class Strings {
 public:
  Strings() { id(""); }
  std::uint64_t id(std::string_view text) {
    const auto [found, fresh] = ids_.try_emplace(std::string(text), ids_.size());
    if (fresh) order_.push_back(&found->first);
    return found->second;
  }
  const std::vector<const std::string*>& in_order() const { return order_; }

 private:
  std::map<std::string, std::uint64_t, std::less<>> ids_;
  std::vector<const std::string*> order_;
};

Message value_type(Strings& strings, std::string_view type, std::string_view unit) {
  return Message().number(1, strings.id(type)).number(2, strings.id(unit));
}

Message sample(Strings& strings, const StackSum& sum, const std::string& place) {
  std::vector<std::uint64_t> locations;
  for (const std::uint32_t frame : sum.frames) locations.push_back(frame + 1);
  Message out;
  out.packed(1, locations);
  out.packed(2, std::array{sum.allocated_count, sum.allocated_bytes, sum.live_count, sum.live_bytes});
  // A numeric label of 0 without a unit disappears in pprof, so that all labels are texts.
  const std::pair<std::string_view, std::string_view> labels[] = {
      {"category", sum.category}, {"layer", sum.layer}, {"dtype", sum.dtype}, {"place", place}};
  for (const auto& [key, text] : labels)
    if (!text.empty()) out.message(3, Message().number(1, strings.id(key)).number(2, strings.id(text)));
  return out;
}

Status write(const Request& request, Output& out) {
  analyze::BlockRows rows(request.engine);
  const auto sums = stack_sums(request, rows);
  if (!sums) return std::unexpected(sums.error());
  const analyze::Overview overview = request.engine.overview();
  Strings strings;
  Message profile;
  profile.message(kSampleType, value_type(strings, "alloc_objects", "count"));
  profile.message(kSampleType, value_type(strings, "alloc_space", "bytes"));
  profile.message(kSampleType, value_type(strings, "inuse_objects", "count"));
  profile.message(kSampleType, value_type(strings, "inuse_space", "bytes"));
  for (const StackSum& sum : sums->sums) profile.message(kSample, sample(strings, sum, sums->place));
  // pprof shows the file of the first mapping as the name of the program.
  profile.message(kMapping,
                  Message().number(1, 1).number(5, strings.id(overview.program)).number(7, 1).number(8, 1).number(9, 1));
  for (std::size_t i = 0; i < sums->frames.size(); ++i) {
    const StackFrame& frame = sums->frames[i];
    const Message line = Message().number(1, i + 1).number(2, frame.line);
    profile.message(kLocation, Message().number(1, i + 1).number(2, 1).message(4, line));
    const std::uint64_t name = strings.id(frame.function);
    profile.message(kFunction, Message().number(1, i + 1).number(2, name).number(3, name).number(4, strings.id(frame.file)));
  }
  profile.number(kTimeNanos, (overview.start_realtime_us + sums->at_us) * 1000);
  profile.number(kDurationNanos, overview.duration_us * 1000);
  profile.message(kPeriodType, value_type(strings, "space", "bytes"));
  profile.number(kPeriod, 1);
  profile.number(kDefaultSampleType, strings.id("inuse_space"));
  for (const std::string* text : strings.in_order()) profile.text(kStringTable, *text);
  out.write(support::gzip(profile.bytes(), 6));
  return {};
}

}  // namespace

const Format kFormat{.name = "pprof",
                     .extension = ".pb.gz",
                     .opens_in = "pprof, Perfetto, Grafana Pyroscope",
                     .binary = true,
                     .takes = kTakesPlace | kTakesInstant,
                     .write = write};

}  // namespace vramscope::exporters::pprof
