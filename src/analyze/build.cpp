#include "analyze/build.h"

#include <limits>

#include <fmt/format.h>

#include "analyze/attribute.h"
#include "analyze/cells.h"
#include "analyze/empty_regions.h"
#include "analyze/lifetime.h"
#include "analyze/places.h"
#include "analyze/pyramid.h"
#include "analyze/scan.h"
#include "analyze/step_marks.h"
#include "analyze/step_measure.h"
#include "analyze/variables.h"

namespace vramscope::analyze {
namespace {

// Positions are 32 bits wide, and a reference spends one on its sign.
constexpr std::uint64_t kMostEvents = std::numeric_limits<std::uint32_t>::max() - 1;
constexpr std::uint64_t kMostAllocs = std::numeric_limits<std::uint32_t>::max() / 2 - 1;

class Build {
 public:
  Build(IndexBuilder& builder, unsigned threads) : builder_(builder), threads_(threads) {}

  Status run(Store& draft) {
    const trace::Reader& reader = draft.reader();
    if (auto ok = make_columns(reader.events(), reader.allocs()); !ok) return ok;
    tables_ = scan(reader, columns_, threads_);
    show_columns(draft);
    if (auto ok = sort_lifetimes(draft); !ok) return ok;
    name_kinds(tables_.kinds, tables_.settings, reader.dictionaries(), names_);
    show_tables(draft);

    std::vector<Place> places = places_of(reader.dictionaries());
    int main = main_place(draft, places);
    PoolSet pools = main < 0 ? PoolSet(reader.dictionaries().pools.size(), 1)
                             : pools_of(places[static_cast<std::size_t>(main)], reader.dictionaries().pools.size());
    find_steps(draft, pools);
    Attribution told = attribute(draft, columns_, names_, threads_);
    show_names(draft);

    Measured measured = measure(draft, pools, places);
    if (main >= 0)
      if (const PlacePeak& peak = measured.peaks[static_cast<std::size_t>(main)];
          peak.steady_peak > 0 && settle_at(draft, columns_, told, names_, peak.steady_peak_at))
        measured = measure(draft, pools, places);
    region_use_ = region_use(draft, threads_);
    tables_.counts.main_place = static_cast<std::uint64_t>(main) + 1;
    tables_.counts.tags_unmatched = told.unmatched;
    return write_rest(measured.pyramid, measured.steps, measured.peaks, told.tagged);
  }

 private:
  static constexpr std::size_t kShownBands = 12;

  // What follows from the categories of the blocks.
  struct Measured {
    Pyramid pyramid;
    std::vector<StepMeasure> steps;
    std::vector<PlacePeak> peaks;
  };

  Measured measure(const Store& draft, const PoolSet& pools, const std::vector<Place>& places) {
    cells_ = count_cells(draft, threads_);
    Grouper grouper(draft, pools, By::category, nullptr, 0, kShownBands);
    Pyramid pyramid = Pyramid::build(draft, grouper, threads_);
    std::vector<StepMeasure> steps = measure_steps(draft, grouper, pyramid, threads_);
    Steady steady = steady_state(draft, steps);
    std::vector<PlacePeak> peaks = measure_places(draft, places, steady.training, threads_);
    return {std::move(pyramid), std::move(steps), std::move(peaks)};
  }

  template <typename T>
  Status column(Section id, std::uint64_t count, std::span<T>& to) {
    auto span = builder_.column<T>(id, count);
    if (!span) return std::unexpected(span.error());
    to = *span;
    return {};
  }

  Status make_columns(std::uint64_t events, std::uint64_t allocs) {
    Status ok = column(Section::birth, allocs, columns_.birth);
    if (ok) ok = column(Section::death, allocs, columns_.death);
    if (ok) ok = column(Section::kind, allocs, columns_.kind);
    if (ok) ok = column(Section::note, allocs, columns_.note);
    if (ok) ok = column(Section::address, allocs, columns_.address);
    if (ok) ok = column(Section::ref, events, columns_.ref);
    if (ok) ok = column(Section::tick, events, columns_.tick);
    return ok;
  }

  void show_columns(Store& draft) const {
    draft.birth = columns_.birth;
    draft.death = columns_.death;
    draft.kind = columns_.kind;
    draft.note = columns_.note;
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

  Status sort_lifetimes(Store& draft) {
    std::uint64_t born = tables_.counts.allocs;
    std::span<std::uint32_t> order;
    if (auto ok = column(Section::class_order, born, order); !ok) return ok;
    class_start_ = sort_by_lifetime(columns_.birth, columns_.death, order, threads_);
    draft.class_order = order;
    draft.class_start = class_start_;
    return {};
  }

  void find_steps(Store& draft, const PoolSet& pools) {
    const auto& words = draft.reader().dictionaries();
    steps_ = told_steps(tables_, words, draft.events(), draft.duration_us(), names_);
    if (steps_.source == 0) {
      steps_ = found_steps(tables_, columns_, words, pools, names_);
      for (StepRow& step : steps_.steps) {
        step.begin_us = draft.time_of(step.begin + 1);
        step.end_us = draft.time_of(step.end);
      }
    }
    tables_.counts.steps_source = static_cast<std::uint64_t>(steps_.source);
    tables_.counts.steps_reason = names_.id(steps_.why);
    draft.steps = steps_.steps;
  }

  Status write_rest(const Pyramid& pyramid, const std::vector<StepMeasure>& measures, const std::vector<PlacePeak>& peaks,
                    const std::vector<TaggedRow>& tagged) {
    Status ok;
    auto put = [&]<typename T>(Section id, std::span<const T> values) {
      if (ok) ok = builder_.append(id, values);
    };
    auto table = [&]<typename T>(Section id, const std::vector<T>& values) { put(id, std::span<const T>(values)); };
    table(Section::cells, cells_.cells);
    table(Section::cell_counts, cells_.counts);
    table(Section::chunks, tables_.chunks);
    table(Section::class_start, class_start_);
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
    table(Section::steps, steps_.steps);
    table(Section::region_use, region_use_);
    table(Section::step_measures, measures);
    table(Section::place_peaks, peaks);
    table(Section::tagged, tagged);
    table(Section::name_offsets, name_offsets_);
    put(Section::name_bytes, std::span<const char>(name_bytes_));
    put(Section::counts, std::span<const Counts>(&tables_.counts, 1));
    put(Section::pyramid_leaves, pyramid.leaves());
    put(Section::pyramid_start, pyramid.start());
    put(Section::pyramid_peak, pyramid.peak());
    return ok;
  }

  IndexBuilder& builder_;
  unsigned threads_;
  Columns columns_;
  Tables tables_;
  NameTable names_;
  StepsFound steps_;
  CellTable cells_;
  std::vector<RegionUse> region_use_;
  std::vector<std::uint64_t> class_start_, name_offsets_;
  std::string name_bytes_;
};

Result<Store> build(Store draft, const std::filesystem::path& index, const Fingerprint& print, unsigned threads) {
  auto builder = IndexBuilder::create(index);
  if (!builder) return std::unexpected(builder.error());
  if (auto ok = Build(*builder, threads).run(draft); !ok) return std::unexpected(ok.error());
  auto file = builder->seal(print);
  if (!file) return std::unexpected(file.error());
  return Store(std::move(*file), std::move(draft).release());
}

}  // namespace

Result<Store> open_store(const std::filesystem::path& trace, const std::filesystem::path& index, bool keep, unsigned threads) {
  auto print = fingerprint(trace);
  if (!print) return std::unexpected(print.error());
  auto reader = trace::Reader::open(trace);
  if (!reader) return std::unexpected(reader.error());
  if (reader->events() > kMostEvents || reader->allocs() > kMostAllocs)
    return fail(fmt::format("{}: {} events are more than one analysis can hold; record with --trace-limit", trace.string(),
                            reader->events()));
  if (keep)
    if (auto file = IndexFile::open(index, *print)) return Store(std::move(*file), std::move(*reader));
  auto store = build(Store(std::move(*reader)), keep ? index : std::filesystem::path(), *print, threads);
  if (store || !keep) return store;
  // No room beside the trace: the answer does not depend on a file.
  auto again = trace::Reader::open(trace);
  if (!again) return std::unexpected(again.error());
  return build(Store(std::move(*again)), {}, *print, threads);
}

}  // namespace vramscope::analyze
