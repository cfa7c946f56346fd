#include "analyze/build.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "analyze/attribute/attribute.h"
#include "analyze/attribute/categories.h"
#include "analyze/attribute/variables.h"
#include "analyze/framework.h"
#include "analyze/index/cohorts.h"
#include "analyze/index/index_cache.h"
#include "analyze/index/lifetime.h"
#include "analyze/index/places.h"
#include "analyze/index/pyramid.h"
#include "analyze/index/scan.h"
#include "analyze/index/tally.h"
#include "analyze/steps/marks.h"
#include "analyze/steps/measure.h"
#include "analyze/verdict/empty_regions.h"
#include "support/work_timer.h"

namespace vramscope::analyze {
namespace {

// Positions are 32 bits wide; a reference to an allocation uses one of the bits to mark frees.
constexpr std::uint64_t kMostEvents = std::numeric_limits<std::uint32_t>::max() - 1;
constexpr std::uint64_t kMostAllocs = std::numeric_limits<std::uint32_t>::max() / 2 - 1;

bool is_for_rules(std::string_view setting) {
  return std::ranges::any_of(
      frameworks(), [&](const Framework* framework) { return std::ranges::count(framework->rule_settings, setting) > 0; });
}

// Bytes of an event and of an allocation in the columns, with their share of what is built on top of them.
constexpr std::uint64_t kEventBytes = 9;
constexpr std::uint64_t kAllocBytes = 28;
constexpr std::uint64_t kWorkingShare = 2;  // the other half of the limit is for building the index and for the answers

class Build {
 public:
  Build(Index& index, unsigned threads) : index_(index), threads_(threads) {}

  // Reads the events without interpreting them.
  Status read(const trace::Reader& reader) {
    support::MemoryBudget memory(reader.memory_limit() / kWorkingShare);
    if (!memory.take(reader.events(), kEventBytes) || !memory.take(reader.allocs(), kAllocBytes))
      return asks_for_too_much(reader);
    make_columns(reader.events(), reader.allocs());
    auto tables = scan(reader, columns_, threads_, memory);
    if (!tables) return std::unexpected(tables.error());
    tables_ = std::move(*tables);
    tally_ = tally(columns_, tables_, reader.dictionaries());
    return {};
  }

  Status run(Store& draft) {
    const trace::Reader& reader = draft.reader();
    if (auto ok = read(reader); !ok) return ok;
    show_columns(draft);
    sort_lifetimes(draft);
    name_kinds(tables_, reader.dictionaries(), names_);
    show_tables(draft);

    std::vector<Place> places = places_of(reader.dictionaries());
    int main = main_place(draft, places);
    PoolSet pools = main < 0 ? PoolSet(reader.dictionaries().pools.size(), 1)
                             : pools_of(places[static_cast<std::size_t>(main)], reader.dictionaries().pools.size());
    find_steps(draft, pools);
    const Attribution attribution = attribute(draft, columns_, names_, threads_);
    for (std::size_t k = 0; k < tables_.kinds.size(); ++k) tables_.kinds[k].variable = attribution.variable_of_kind[k];
    show_names(draft);

    Measured measured = measure(draft, pools, places);
    if (main >= 0)
      if (const PlacePeak& peak = measured.peaks[static_cast<std::size_t>(main)];
          peak.steady_peak > 0 && settle_at(draft, columns_, attribution, names_, peak.steady_peak_at))
        measured = measure(draft, pools, places);
    region_use_ = region_use(draft, threads_);
    tables_.counts.main_place = static_cast<std::uint64_t>(main) + 1;
    tables_.counts.tags_unmatched = attribution.unmatched;
    write_tables();
    write_measures(measured.pyramid, measured.steps, measured.peaks, attribution.tagged);
    return {};
  }

  // Adds everything that was read to the index.
  void write_tables() {
    table(Section::chunks, tables_.chunks);
    table(Section::kinds, tables_.kinds);
    table(Section::regions, tables_.regions);
    table(Section::marks, tables_.marks);
    table(Section::tags, tables_.tags);
    table(Section::stats, tables_.stats);
    table(Section::ooms, tables_.ooms);
    table(Section::device_samples, tables_.device_samples);
    table(Section::host_samples, tables_.host_samples);
    table(Section::settings, tables_.settings);
    table(Section::lost, tables_.lost);
    table(Section::contexts, tables_.contexts);
    table(Section::totals, tables_.totals);
    table(Section::omitted, tables_.omitted);
    table(Section::reports, tables_.reports);
    table(Section::pool_tallies, tally_.pools);
    put(Section::driver_tally, std::span<const Held>(&tally_.driver, 1));
    table(Section::owner_tallies, tally_.owners);
    put(Section::counts, std::span<const Counts>(&tables_.counts, 1));
  }

 private:
  // Everything that depends on the categories of the blocks.
  struct Measured {
    Pyramid pyramid;
    std::vector<StepMeasure> steps;
    std::vector<PlacePeak> peaks;
  };

  Measured measure(const Store& draft, const PoolSet& pools, const std::vector<Place>& places) {
    cohorts_ = count_cohorts(draft, threads_);
    Grouper grouper(draft, pools, By::category, nullptr, 0, kShown);
    Pyramid pyramid = Pyramid::build(draft, grouper, threads_);
    std::vector<StepMeasure> steps = measure_steps(draft, grouper, pyramid, threads_);
    Steady steady = steady_state(draft, steps);
    std::vector<PlacePeak> peaks = measure_places(draft, places, steady.training, threads_);
    return {std::move(pyramid), std::move(steps), std::move(peaks)};
  }

  template <typename T>
  void column(Section id, std::uint64_t count, std::span<T>& to) {
    to = index_.add_column<T>(id, count);
  }

  void make_columns(std::uint64_t events, std::uint64_t allocs) {
    column(Section::birth, allocs, columns_.birth);
    column(Section::death, allocs, columns_.death);
    column(Section::kind, allocs, columns_.kind);
    column(Section::attributes, allocs, columns_.attributes);
    column(Section::address, allocs, columns_.address);
    column(Section::ref, events, columns_.ref);
    column(Section::tick, events, columns_.tick);
  }

  void show_columns(Store& draft) const {
    draft.birth = columns_.birth;
    draft.death = columns_.death;
    draft.kind = columns_.kind;
    draft.attributes = columns_.attributes;
    draft.address = columns_.address;
    draft.ref = columns_.ref;
    draft.tick = columns_.tick;
    draft.chunks = tables_.chunks;
  }

  void show_tables(Store& draft) const {
    draft.kinds = tables_.kinds;
    draft.regions = tables_.regions;
    draft.marks = tables_.marks;
    draft.tags = tables_.tags;
    draft.ooms = tables_.ooms;
    for (const auto& setting : tables_.settings)  // only what the rules of attribution ask for: a trace may have millions
      if (const std::string_view key = text_of(draft.dictionaries(), setting.row.key); is_for_rules(key))
        draft.settings.push_back({key, text_of(draft.dictionaries(), setting.row.value)});
  }

  void show_names(Store& draft) {
    name_offsets_ = {0};
    name_bytes_.clear();
    for (const std::string& text : names_.all()) {
      name_bytes_ += text;
      name_offsets_.push_back(name_bytes_.size());
    }
    draft.name_offsets = name_offsets_;
    draft.name_bytes = name_bytes_;
    draft.steps = steps_.steps;
  }

  void sort_lifetimes(Store& draft) {
    std::uint64_t born = tables_.counts.allocs;
    std::span<std::uint32_t> order;
    column(Section::class_order, born, order);
    class_start_ = sort_by_lifetime(columns_.birth, columns_.death, order, threads_);
    draft.class_order = order;
    draft.class_start = class_start_;
  }

  void find_steps(Store& draft, const PoolSet& pools) {
    const auto& dictionaries = draft.reader().dictionaries();
    steps_ = reported_steps(tables_, dictionaries, draft.events(), draft.duration_us(), names_);
    // A step that began and never ended is all that a loop without an optimizer reports.
    if (std::ranges::all_of(steps_.steps, [](const StepRow& step) { return step.open != 0; }))
      if (StepsFound passes = steps_of_passes(tables_, dictionaries, draft.events(), draft.duration_us(), names_);
          passes.source != StepSource::none)
        steps_ = std::move(passes);
    if (steps_.source == StepSource::none) {
      steps_ = inferred_steps(tables_, columns_, dictionaries, pools, names_);
      for (StepRow& step : steps_.steps) {
        step.begin_us = draft.time_of(step.begin + 1);
        step.end_us = draft.time_of(step.end);
      }
    }
    tables_.counts.steps_source = static_cast<std::uint64_t>(steps_.source);
    tables_.counts.steps_reason = names_.id(steps_.why);
    draft.steps = steps_.steps;
  }

  template <typename T>
  void put(Section id, std::span<const T> values) {
    index_.add_table(id, values);
  }
  template <typename T>
  void table(Section id, const std::vector<T>& values) {
    put(id, std::span<const T>(values));
  }

  void write_measures(const Pyramid& pyramid, const std::vector<StepMeasure>& measures, const std::vector<PlacePeak>& peaks,
                      const std::vector<TaggedRow>& tagged) {
    table(Section::cohorts, cohorts_.cohorts);
    table(Section::cohort_counts, cohorts_.counts);
    table(Section::class_start, class_start_);
    table(Section::steps, steps_.steps);
    table(Section::region_use, region_use_);
    table(Section::step_measures, measures);
    table(Section::place_peaks, peaks);
    table(Section::tagged, tagged);
    table(Section::name_offsets, name_offsets_);
    put(Section::name_bytes, std::span<const char>(name_bytes_));
    put(Section::pyramid_leaves, pyramid.leaves());
    put(Section::pyramid_start, pyramid.start());
    put(Section::pyramid_peak, pyramid.peak());
  }

  Index& index_;
  unsigned threads_;
  Columns columns_;
  Tables tables_;
  Tally tally_;
  NameTable names_;
  StepsFound steps_;
  CohortTable cohorts_;
  std::vector<RegionUse> region_use_;
  std::vector<std::uint64_t> class_start_, name_offsets_;
  std::string name_bytes_;
};

Result<Index> build(Store& draft, unsigned threads) {
  Index index;
  if (auto ok = Build(index, threads).run(draft); !ok) return std::unexpected(ok.error());
  return index;
}

Result<trace::Reader> open_reader(const std::filesystem::path& trace, const std::optional<IndexCache>& cache = std::nullopt) {
  auto reader = cache ? trace::Reader::open(trace, cache->key()) : trace::Reader::open(trace);
  if (reader && (reader->events() > kMostEvents || reader->allocs() > kMostAllocs))
    return fail(
        fmt::format("{}: {} events are too many to analyze; record with --trace-limit", trace.string(), reader->events()));
  return reader;
}

}  // namespace

Result<Store> open_store(const std::filesystem::path& trace, const OpenOptions& options) {
  const unsigned threads = std::max(1u, options.threads);
  std::optional<IndexCache> cache;
  if (options.keep_index) cache = IndexCache::open(options.cache);
  auto reader = open_reader(trace, cache);
  if (!reader) return std::unexpected(reader.error());
  if (cache)
    if (auto index = cache->find(*reader, threads)) return Store(std::move(*index), std::move(*reader));

  const support::WorkTimer timer;
  Store draft(std::move(*reader));
  auto index = build(draft, threads);
  if (!index) return std::unexpected(index.error());
  // Keeping an index that is built as fast as it is read would only fill the disk.
  if (cache && timer.seconds() >= options.index_after_s) cache->keep(*index, draft.reader(), threads);
  return Store(std::move(*index), std::move(draft).release());
}

Result<Store> read_store(const std::filesystem::path& trace, unsigned threads) {
  auto reader = open_reader(trace);
  if (!reader) return std::unexpected(reader.error());
  Index index;
  Build build(index, threads);
  if (auto ok = build.read(*reader); !ok) return std::unexpected(ok.error());
  build.write_tables();
  return Store(std::move(index), std::move(*reader));
}

}  // namespace vramscope::analyze
