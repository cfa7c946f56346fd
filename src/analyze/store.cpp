#include "analyze/store.h"

#include <algorithm>
#include <utility>

#include "analyze/losses.h"

namespace vramscope::analyze {

const Kind Store::kNoKind{};

std::string_view name_of(Stage stage) {
  constexpr std::string_view kNames[kStages] = {"other",    "input", "forward", "backward", "optimizer", "save",
                                                "evaluate", "build", "trace",   "compile",  "import"};
  auto i = static_cast<std::size_t>(stage);
  return i < kStages ? kNames[i] : kNames[0];
}

std::string_view name_of(Known known) {
  constexpr std::string_view kNames[] = {"unknown", "inferred", "named", "told"};
  return kNames[static_cast<std::size_t>(known) & 3];
}

Store::Store(IndexFile index, trace::Reader reader) : index_(std::move(index)), reader_(std::move(reader)) {
  const IndexFile& f = index_;
  birth = f.get<std::uint32_t>(Section::birth);
  death = f.get<std::uint32_t>(Section::death);
  kind = f.get<std::uint32_t>(Section::kind);
  note = f.get<std::uint32_t>(Section::note);
  address = f.get<std::uint64_t>(Section::address);
  ref = f.get<std::uint32_t>(Section::ref);
  tick = f.get<std::uint32_t>(Section::tick);
  chunks = f.get<ChunkRow>(Section::chunks);
  class_order = f.get<std::uint32_t>(Section::class_order);
  class_start = f.get<std::uint64_t>(Section::class_start);
  kinds = f.get<Kind>(Section::kinds);
  regions = f.get<Stamped<trace::Region>>(Section::regions);
  marks = f.get<Stamped<trace::Mark>>(Section::marks);
  tags = f.get<Stamped<trace::Tag>>(Section::tags);
  stats = f.get<Stamped<trace::Stats>>(Section::stats);
  ooms = f.get<Stamped<trace::Oom>>(Section::ooms);
  device_samples = f.get<Stamped<trace::DeviceSample>>(Section::device_samples);
  host_samples = f.get<Stamped<trace::HostSample>>(Section::host_samples);
  settings = f.get<Stamped<trace::Setting>>(Section::settings);
  lost = f.get<Stamped<trace::Lost>>(Section::lost);
  contexts = f.get<Stamped<trace::Context>>(Section::contexts);
  totals = f.get<Stamped<trace::Totals>>(Section::totals);
  omitted = f.get<Stamped<trace::Omitted>>(Section::omitted);
  steps = f.get<StepRow>(Section::steps);
  region_use = f.get<RegionUse>(Section::region_use);
  cells = f.get<Cell>(Section::cells);
  cell_counts = f.get<std::uint32_t>(Section::cell_counts);
  tagged = f.get<TaggedRow>(Section::tagged);
  name_offsets = f.get<std::uint64_t>(Section::name_offsets);
  name_bytes = f.get<char>(Section::name_bytes);
  if (auto c = f.get<Counts>(Section::counts); !c.empty()) counts = c[0];
}

std::string_view Store::text(trace::StringId id) const {
  auto i = static_cast<std::size_t>(id);
  const auto& strings = words().strings;
  return i < strings.size() ? std::string_view(strings[i]) : std::string_view();
}

std::string_view Store::name(std::uint32_t id) const {
  if (id >= names()) return {};
  std::uint64_t from = name_offsets[id], to = name_offsets[id + 1];
  if (from > to || to > name_bytes.size()) return {};
  return {name_bytes.data() + from, to - from};
}

const trace::Site& Store::site_of(const Kind& k) const {
  static const trace::Site kNoSite{};
  return k.site < words().sites.size() ? words().sites[k.site] : kNoSite;
}

std::uint64_t Store::time_of_event(std::uint64_t pos) const {
  auto it =
      std::upper_bound(chunks.begin(), chunks.end(), pos, [](std::uint64_t p, const ChunkRow& c) { return p < c.first_event; });
  if (it == chunks.begin()) return 0;
  const ChunkRow& c = *--it;
  if (c.lost != 0 || pos >= tick.size() || pos - c.first_event >= c.events) return c.last_us;
  return std::max(c.floor_us, c.base_us + (std::uint64_t{tick[pos]} << c.shift));
}

std::uint64_t Store::time_of(Moment at) const { return at == 0 ? 0 : time_of_event(std::min<std::uint64_t>(at, events()) - 1); }

std::uint64_t Store::lost_events() const {
  std::uint64_t sum = 0;
  for (const auto& each : lost)
    if (are_missing(each.row.kind)) sum += each.row.count;
  return sum;
}

Moment Store::moment_at(std::uint64_t time_us) const {
  // First chunk whose last event is later than the time; all before it have happened.
  auto it =
      std::upper_bound(chunks.begin(), chunks.end(), time_us, [](std::uint64_t t, const ChunkRow& c) { return t < c.last_us; });
  if (it == chunks.end()) return events();
  if (it->lost != 0 || it->floor_us > time_us) return it->first_event;
  std::uint64_t lo = 0, hi = it->events;
  while (lo < hi) {
    std::uint64_t mid = (lo + hi) / 2, pos = it->first_event + mid;
    std::uint64_t t =
        pos < tick.size() ? std::max(it->floor_us, it->base_us + (std::uint64_t{tick[pos]} << it->shift)) : it->last_us;
    if (t <= time_us)
      lo = mid + 1;
    else
      hi = mid;
  }
  return it->first_event + lo;
}

}  // namespace vramscope::analyze
