#include "analyze/index/index_check.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "analyze/index/places.h"
#include "analyze/index/pyramid.h"
#include "analyze/index/store.h"
#include "analyze/index/tally.h"
#include "analyze/steps/measure.h"
#include "trace/report_texts.h"

namespace vramscope::analyze {
namespace {

using trace::Category;
using trace::LossKind;
using trace::MarkEdge;
using trace::MarkKind;

// A bool from a file may have any value; it may be read as a bool only after this check.
bool is_bool(const bool& value) {
  std::uint8_t byte = 0;
  std::memcpy(&byte, &value, 1);
  return byte <= 1;
}

// Each value is below the limit, or kNone32.
ColumnCheck<std::uint32_t> below(std::uint64_t limit) {
  return [limit](std::span<const std::uint32_t> values) {
    return std::ranges::all_of(values, [&](std::uint32_t v) { return v < limit || v == kNone32; });
  };
}

bool is_category(std::uint8_t value) { return value <= std::to_underlying(Category::activation_gradient); }

class TableCheck {
 public:
  TableCheck(const Index& index, const trace::Reader& trace)
      : index_(index), trace_(trace), dictionaries_(trace.dictionaries()) {}

  bool all() const {
    return sizes() && lengths() && names() && times() && kinds() && events_of_the_run() && steps() && measures();
  }

 private:
  // Whether the values of each section have the size of T. To its readers, a section with values of another size has none,
  // whatever its count says.
  template <typename T, typename... Sections>
  bool hold(Sections... ids) const {
    return ((index_.table<T>(ids).size() == index_.count(ids)) && ...);
  }

  bool sizes() const {
    return hold<std::uint32_t>(Section::birth, Section::death, Section::kind, Section::attributes, Section::ref, Section::tick,
                               Section::class_order, Section::cohort_counts) &&
           hold<std::uint64_t>(Section::address, Section::class_start, Section::name_offsets) &&
           hold<char>(Section::name_bytes) && hold<ChunkRow>(Section::chunks) && hold<Kind>(Section::kinds) &&
           hold<Cohort>(Section::cohorts) && hold<TaggedRow>(Section::tagged) && hold<StepRow>(Section::steps) &&
           hold<StepMeasure>(Section::step_measures) && hold<RegionUse>(Section::region_use) &&
           hold<Leaf>(Section::pyramid_leaves) && hold<Bytes>(Section::pyramid_start, Section::pyramid_peak) &&
           hold<PlacePeak>(Section::place_peaks) && hold<Held>(Section::pool_tallies, Section::driver_tally) &&
           hold<HeldByOwner>(Section::owner_tallies);
  }

  bool lengths() const {
    const std::uint64_t allocs = trace_.allocs(), events = trace_.events();
    for (Section id : {Section::birth, Section::death, Section::kind, Section::attributes, Section::address})
      if (index_.count(id) != allocs) return false;
    if (index_.count(Section::ref) != events || index_.count(Section::tick) != events) return false;
    auto start = index_.table<std::uint64_t>(Section::class_start);
    return index_.count(Section::class_order) <= allocs && start.size() == kClasses + 1 && start.front() == 0 &&
           std::ranges::is_sorted(start) && start.back() == index_.count(Section::class_order);
  }

  bool names() const {
    auto offsets = index_.table<std::uint64_t>(Section::name_offsets);
    return !offsets.empty() && offsets.front() == 0 && std::ranges::is_sorted(offsets) &&
           offsets.back() == index_.count(Section::name_bytes);
  }

  bool times() const {
    std::uint64_t next = 0;
    for (const ChunkRow& chunk : index_.table<ChunkRow>(Section::chunks)) {
      if (chunk.first_event < next || chunk.first_event > events() || chunk.events > events() - chunk.first_event ||
          chunk.shift > 32)
        return false;
      next = chunk.first_event + chunk.events;
    }
    return true;
  }

  bool kinds() const {
    for (const Kind& kind : index_.table<Kind>(Section::kinds))
      if (kind.site >= dictionaries_.sites.size() || kind.pool >= dictionaries_.pools.size() || !is_name(kind.layer) ||
          !is_name(kind.line) || !is_name(kind.variable) || !is_category(kind.category) || !is_category(kind.kept_as) ||
          kind.stage >= kStages)
        return false;
    for (const Cohort& cohort : index_.table<Cohort>(Section::cohorts))
      if ((cohort.kind >= index_.count(Section::kinds) && cohort.kind != kNone32) || cohort.example >= trace_.allocs())
        return false;
    for (const TaggedRow& row : index_.table<TaggedRow>(Section::tagged))
      if (row.alloc >= trace_.allocs() || row.name >= dictionaries_.strings.size()) return false;
    return true;
  }

  // Whether all rows of one kind of event have a valid position and thread, and pass `good`.
  template <typename Row, typename Good>
  bool stamped(Section id, Good good) const {
    return std::ranges::all_of(index_.table<Stamped<Row>>(id), [&](const Stamped<Row>& each) {
      return each.pos < events() && each.thread < dictionaries_.threads.size() && good(each.row);
    });
  }

  bool events_of_the_run() const {
    const auto fine = [](const auto&) { return true; };
    const auto pool = [&](const auto& row) { return std::to_underlying(row.pool) < dictionaries_.pools.size(); };
    return stamped<trace::Region>(Section::regions,
                                  [&](const trace::Region& row) { return pool(row) && is_bool(row.returned); }) &&
           stamped<trace::Mark>(Section::marks,
                                [&](const trace::Mark& row) {
                                  return row.kind >= MarkKind::phase && row.kind <= MarkKind::retrace &&
                                         row.edge <= MarkEdge::end && is_text(row.name) && is_text(row.detail);
                                }) &&
           stamped<trace::Tag>(Section::tags,
                               [&](const trace::Tag& row) {
                                 return is_category(std::to_underlying(row.category)) && is_text(row.name) && is_text(row.layer);
                               }) &&
           stamped<trace::Stats>(Section::stats, pool) &&
           stamped<trace::Oom>(Section::ooms,
                               [&](const trace::Oom& row) {
                                 return std::to_underlying(row.site) < dictionaries_.sites.size() && is_bool(row.final);
                               }) &&
           stamped<trace::DeviceSample>(Section::device_samples, fine) &&
           stamped<trace::HostSample>(Section::host_samples, fine) &&
           stamped<trace::Setting>(Section::settings,
                                   [&](const trace::Setting& row) { return is_text(row.key) && is_text(row.value); }) &&
           stamped<trace::Lost>(Section::lost, [](const trace::Lost& row) { return row.kind <= LossKind::trace_write; }) &&
           stamped<trace::Context>(Section::contexts, fine) &&
           stamped<trace::Totals>(Section::totals,
                                  [&](const trace::Totals& row) { return pool(row) && is_bool(row.order_exact); }) &&
           stamped<trace::Omitted>(Section::omitted, pool) && reports();
  }

  bool reports() const {
    return std::ranges::all_of(index_.table<trace::Report>(Section::reports), [&](const trace::Report& report) {
      bool good = report.index() < std::variant_size_v<trace::Report>;
      if (good) trace::for_each_text(report, [&](trace::StringId id) { good = good && is_text(id); });
      return good;
    });
  }

  bool steps() const {
    auto steps = index_.table<StepRow>(Section::steps);
    std::uint64_t before = 0;
    for (const StepRow& step : steps) {
      if (step.begin < before || step.end < step.begin || step.end > events() || !is_name(step.kind)) return false;
      before = step.begin;
    }
    for (const StepMeasure& measure : index_.table<StepMeasure>(Section::step_measures))
      if (measure.peak_at > events()) return false;
    auto counts = index_.table<Counts>(Section::counts);
    return index_.count(Section::step_measures) == steps.size() && counts.size() == 1 && counts[0].steps_source <= 2 &&
           is_name(counts[0].steps_reason) && counts[0].events == events() &&
           counts[0].main_place <= index_.count(Section::place_peaks);
  }

  bool measures() const {
    const std::uint64_t leaves = std::max<std::uint64_t>(1, (events() + Pyramid::kLeafEvents - 1) / Pyramid::kLeafEvents);
    if (index_.count(Section::pyramid_leaves) != leaves) return false;
    for (const Leaf& leaf : index_.table<Leaf>(Section::pyramid_leaves))
      if (leaf.at > events()) return false;
    auto peaks = index_.table<PlacePeak>(Section::place_peaks);
    for (const PlacePeak& peak : peaks)
      if (peak.peak_at > events() || peak.steady_peak_at > events()) return false;
    for (const HeldByOwner& row : index_.table<HeldByOwner>(Section::owner_tallies))
      if (row.owner >= dictionaries_.strings.size()) return false;
    return peaks.size() == places_of(dictionaries_).size() && index_.count(Section::pool_tallies) == dictionaries_.pools.size() &&
           index_.count(Section::driver_tally) == 1;
  }

  std::uint64_t events() const { return trace_.events(); }
  bool is_name(std::uint64_t id) const { return id + 1 < index_.count(Section::name_offsets); }
  bool is_text(trace::StringId id) const { return std::to_underlying(id) < dictionaries_.strings.size(); }

  const Index& index_;
  const trace::Reader& trace_;
  const trace::Dictionaries& dictionaries_;
};

}  // namespace

bool makes_sense(const Index& index, const trace::Reader& trace) { return TableCheck(index, trace).all(); }

ColumnChecks column_checks(const Index& index) {
  const auto attributes = [](std::span<const std::uint32_t> values) {
    return std::ranges::all_of(values, [](std::uint32_t bits) {
      const Attributes one{bits};
      return is_category(std::to_underlying(one.category())) && std::to_underlying(one.stage()) < kStages;
    });
  };
  return {.event = below(index.count(Section::ref)),
          .alloc =
              [limit = index.count(Section::birth)](std::span<const std::uint32_t> values) {
                return std::ranges::all_of(values, [&](std::uint32_t v) { return v < limit; });
              },
          .kind = below(index.count(Section::kinds)),
          .ref = below(index.count(Section::birth) * 2),
          .attributes = attributes};
}

}  // namespace vramscope::analyze
