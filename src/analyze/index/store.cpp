#include "analyze/index/store.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "analyze/index/index_check.h"
#include "analyze/index/losses.h"

namespace vramscope::analyze {

const Kind Store::kNoKind{};

std::string_view name_of(Stage stage) {
  constexpr std::string_view kNames[kStages] = {"other",    "input", "forward", "backward", "optimizer", "save",
                                                "evaluate", "build", "trace",   "compile",  "import"};
  auto i = static_cast<std::size_t>(stage);
  return i < kStages ? kNames[i] : kNames[0];
}

std::string_view name_of(Known known) {
  constexpr std::string_view kNames[] = {"unknown", "inferred", "named", "reported"};
  return kNames[static_cast<std::size_t>(known) & 3];
}

namespace {

// A value that many settings have takes its bytes once in the trace, but once per setting in an answer.
constexpr std::uint64_t kMostSettingBytes = 16u << 20;

// A trace may set the same long text millions of times: texts are looked at once per key.
std::vector<SettingText> last_settings(const trace::Dictionaries& dictionaries, std::span<const Stamped<trace::Setting>> rows) {
  std::vector<std::uint8_t> seen(dictionaries.strings.size(), 0);
  std::vector<SettingText> out;
  for (const auto& each : rows | std::views::reverse) {
    const auto key = static_cast<std::size_t>(each.row.key);
    if (key >= seen.size() || seen[key] != 0) continue;
    seen[key] = 1;
    out.push_back({text_of(dictionaries, each.row.key), text_of(dictionaries, each.row.value)});
  }
  // Only a forged trace has a text twice; the later row wins there, too.
  std::ranges::stable_sort(out, {}, &SettingText::key);
  const auto rest = std::ranges::unique(out, {}, &SettingText::key);
  out.erase(rest.begin(), rest.end());
  std::uint64_t bytes = 0;
  for (SettingText& each : out)
    if ((bytes += each.key.size() + each.value.size()) > kMostSettingBytes) each.value = "(left out: the settings are too long)";
  return out;
}

}  // namespace

Store::Store(Index index, trace::Reader reader) : index_(std::move(index)), reader_(std::move(reader)) {
  Index& f = index_;
  const ColumnChecks checks = column_checks(index_);
  birth = f.column<std::uint32_t>(Section::birth, checks.event);
  death = f.column<std::uint32_t>(Section::death, checks.event);
  kind = f.column<std::uint32_t>(Section::kind, checks.kind);
  attributes = f.column<std::uint32_t>(Section::attributes, checks.attributes);
  address = f.column<std::uint64_t>(Section::address, {});
  ref = f.column<std::uint32_t>(Section::ref, checks.ref);
  tick = f.column<std::uint32_t>(Section::tick, {});
  chunks = f.table<ChunkRow>(Section::chunks);
  class_order = f.column<std::uint32_t>(Section::class_order, checks.alloc);
  class_start = f.table<std::uint64_t>(Section::class_start);
  kinds = f.table<Kind>(Section::kinds);
  regions = f.table<Stamped<trace::Region>>(Section::regions);
  marks = f.table<Stamped<trace::Mark>>(Section::marks);
  tags = f.table<Stamped<trace::Tag>>(Section::tags);
  stats = f.table<Stamped<trace::Stats>>(Section::stats);
  ooms = f.table<Stamped<trace::Oom>>(Section::ooms);
  device_samples = f.table<Stamped<trace::DeviceSample>>(Section::device_samples);
  host_samples = f.table<Stamped<trace::HostSample>>(Section::host_samples);
  settings = last_settings(dictionaries(), f.table<Stamped<trace::Setting>>(Section::settings));
  lost = f.table<Stamped<trace::Lost>>(Section::lost);
  contexts = f.table<Stamped<trace::Context>>(Section::contexts);
  totals = f.table<Stamped<trace::Totals>>(Section::totals);
  omitted = f.table<Stamped<trace::Omitted>>(Section::omitted);
  reports = f.table<trace::Report>(Section::reports);
  steps = f.table<StepRow>(Section::steps);
  region_use = f.table<RegionUse>(Section::region_use);
  cohorts = f.table<Cohort>(Section::cohorts);
  cohort_counts = f.table<std::uint32_t>(Section::cohort_counts);
  tagged = f.table<TaggedRow>(Section::tagged);
  pool_tallies = f.table<Held>(Section::pool_tallies);
  owner_tallies = f.table<HeldByOwner>(Section::owner_tallies);
  if (auto d = f.table<Held>(Section::driver_tally); !d.empty()) driver_tally = d[0];
  name_offsets = f.table<std::uint64_t>(Section::name_offsets);
  name_bytes = f.table<char>(Section::name_bytes);
  if (auto c = f.table<Counts>(Section::counts); !c.empty()) counts = c[0];
}

std::string_view text_of(const trace::Dictionaries& dictionaries, trace::StringId id) {
  const auto i = static_cast<std::size_t>(id);
  return i < dictionaries.strings.size() ? std::string_view(dictionaries.strings[i]) : std::string_view();
}

std::string_view Store::name(std::uint32_t id) const {
  if (id >= names()) return {};
  std::uint64_t from = name_offsets[id], to = name_offsets[id + 1];
  if (from > to || to > name_bytes.size()) return {};
  return {name_bytes.data() + from, to - from};
}

const trace::Site& Store::site_of(const Kind& k) const {
  static const trace::Site kNoSite{};
  return k.site < dictionaries().sites.size() ? dictionaries().sites[k.site] : kNoSite;
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

std::uint64_t Store::events_read() const {
  std::uint64_t sum = 0;
  for (const ChunkRow& chunk : chunks) sum += chunk.events;
  return sum;
}

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
