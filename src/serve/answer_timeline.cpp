// Stack, tracks and marks of one tile of the time axis; stepping from event to event.
#include <algorithm>

#include "analyze/labels.h"
#include "analyze/query/instant_text.h"
#include "analyze/steps/pass_bands.h"
#include "analyze/verdict/notable.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"

namespace vramscope::serve {

namespace {

constexpr std::size_t kMostBands = 1500;

// Overlapping bands go into separate rows, the earliest first.
void assign_rows(std::vector<Band>& bands) {
  std::vector<double> row_end;
  std::sort(bands.begin(), bands.end(), [](const Band& a, const Band& b) { return a.t0 != b.t0 ? a.t0 < b.t0 : a.t1 > b.t1; });
  for (Band& band : bands) {
    const auto free = std::find_if(row_end.begin(), row_end.end(), [&](double end) { return end <= band.t0; });
    band.row = static_cast<std::uint64_t>(free - row_end.begin());
    if (free == row_end.end())
      row_end.push_back(band.t1);
    else
      *free = band.t1;
  }
}

// More bands than pixels: every n-th one, so that the page stays fast; the strip and the table have all of them.
bool thin_out(std::vector<Band>& bands) {
  if (bands.size() <= kMostBands) return false;
  const std::size_t every = bands.size() / kMostBands + 1;
  std::vector<Band> some;
  for (std::size_t i = 0; i < bands.size(); i += every) some.push_back(std::move(bands[i]));
  bands = std::move(some);
  return true;
}

Track device_track(const Opened& trace, const Tile& tile, std::int64_t device) {
  Track track{.id = "device", .source = "NVML", .kind = "samples"};
  std::size_t known = 0;
  for (const analyze::Sample& sample : trace.samples()) {
    if (sample.device != device || device < 0) continue;
    ++known;
    track.top = std::max(track.top, static_cast<double>(sample.used));
    if (sample.time_us < tile.t0 || sample.time_us >= tile.t1) continue;
    track.t.push_back(static_cast<double>(sample.time_us));
    track.value.push_back(static_cast<double>(sample.used));
    track.text = analyze::label_of(sample);
  }
  if (known == 0) track.missing = analyze::label_without_samples(device);
  return track;
}

Track host_track(const Opened& trace, const Tile& tile) {
  Track track{.id = "host", .source = "resident set", .kind = "samples"};
  std::size_t known = 0;
  for (const analyze::Sample& sample : trace.samples()) {
    if (sample.device >= 0) continue;
    ++known;
    track.top = std::max(track.top, static_cast<double>(sample.used));
    if (sample.time_us < tile.t0 || sample.time_us >= tile.t1) continue;
    track.t.push_back(static_cast<double>(sample.time_us));
    track.value.push_back(static_cast<double>(sample.used));
    track.text = analyze::label_of(sample);
  }
  if (known == 0) track.missing = analyze::kNoHostSample;
  return track;
}

}  // namespace

Result<Stack> EngineService::stack(const StackParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto by = analyze::by_from(params.by.empty() ? "category" : params.by);
  if (!by) return std::unexpected(by.error());
  const auto tile = tile_range(params.level, params.tile);
  if (!tile) return std::unexpected(tile.error());
  const std::uint64_t end = trace.overview().duration_us + 1;
  Stack out{.t0 = static_cast<double>(tile->t0), .t1 = static_cast<double>(std::min(tile->t1, end))};
  const analyze::Place* place = main_place(engine);
  out.top = place != nullptr ? static_cast<double>(place->peak) : 0;
  if (tile->t0 >= end) return out;
  analyze::StackedRequest request{
      .t0_us = tile->t0, .t1_us = std::min(tile->t1, end), .width = kTileColumns, .by = *by, .where = params.filter};
  const auto stacked = engine.stacked(request);
  if (!stacked) return std::unexpected(stacked.error());
  if (!params.filter.empty()) {
    // Panning never rescales: the scale is that of the filter over the whole run.
    const auto whole = engine.stacked({.t0_us = 0, .t1_us = end, .width = kTileColumns, .by = *by, .where = params.filter});
    if (whole) out.top = whole->high.empty() ? 0 : static_cast<double>(*std::max_element(whole->high.begin(), whole->high.end()));
  }
  for (std::size_t g = 0; g < stacked->groups.size(); ++g) {
    const auto& values = stacked->peak[g];
    const double most = values.empty() ? 0 : static_cast<double>(*std::max_element(values.begin(), values.end()));
    out.groups.push_back(
        {stacked->groups[g], *by == analyze::By::category ? stacked->groups[g] : "", most, stacked->groups[g] == "other"});
    out.bytes.insert(out.bytes.end(), values.begin(), values.end());
  }
  out.exact = stacked->exact_borders;
  for (const std::uint64_t events : stacked->events) out.events += events;
  out.t = column(stacked->border_us);
  out.moment = column(stacked->at);
  out.peak_t = column(stacked->time_us);
  out.low = column(stacked->low);
  out.density = column(stacked->events);
  return out;
}

Result<Tracks> EngineService::tracks(const TracksParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto tile = tile_range(params.level, params.tile);
  if (!tile) return std::unexpected(tile.error());
  const std::uint64_t end = trace.overview().duration_us + 1;
  const analyze::Place* place = main_place(engine);
  Tracks out;
  out.tracks.push_back(device_track(trace, *tile, place != nullptr ? place->device : -1));
  Track pool{.id = "pool", .source = "held", .kind = "steps"};
  Track events{.id = "events", .source = "alloc and free", .kind = "density"};
  if (place != nullptr) {
    pool.top = static_cast<double>(std::max(place->regions_peak, place->peak));
    if (place->regions_peak == 0)
      pool.missing = analyze::kNoRegions;
    else
      pool.text = analyze::label_of_pools(*place);
  }
  if (tile->t0 < end) {
    auto history = pool_over_time(engine, tile->t0, std::min(tile->t1, end));
    if (!history) return std::unexpected(history.error());
    events.t = history->t;
    events.top = history->events.empty() ? 1 : *std::ranges::max_element(history->events);
    events.value = std::move(history->events);
    pool.t = std::move(history->t);
    pool.value = std::move(history->held);
    pool.value2 = std::move(history->live);
  }
  out.tracks.push_back(std::move(pool));
  out.tracks.push_back(std::move(events));
  out.tracks.push_back(host_track(trace, *tile));
  return out;
}

Result<Marks> EngineService::marks(const MarksParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto tile = tile_range(params.level, params.tile);
  if (!tile) return std::unexpected(tile.error());
  const auto inside = [&](std::uint64_t t0, std::uint64_t t1) { return t0 < tile->t1 && t1 >= tile->t0; };
  Marks out;
  const analyze::Steps& steps = trace.steps();
  for (const analyze::Step& step : steps.steps) {
    if (!inside(step.begin_us, step.end_us)) continue;
    out.bands.push_back(
        {"step", analyze::label_of(step), step.number, static_cast<double>(step.begin_us), static_cast<double>(step.end_us), 0});
  }
  out.coarse = thin_out(out.bands);
  std::vector<Band> phases;
  for (const analyze::Phase& phase : trace.phases())
    if (inside(phase.begin_us, phase.end_us))
      phases.push_back({"phase", phase.name, 0, static_cast<double>(phase.begin_us), static_cast<double>(phase.end_us), 0});
  out.coarse |= thin_out(phases);
  for (const std::string_view kind : {"phase", "scope"})
    for (const analyze::Mark& mark : engine.marks(tile->t0, tile->t1, kind)) {
      if (phases.size() >= kMostBands) break;
      const bool twice = std::any_of(phases.begin(), phases.end(), [&](const Band& b) {
        return b.name == mark.name && b.t0 == static_cast<double>(mark.begin_us);
      });
      if (!twice && mark.end_us > mark.begin_us)
        phases.push_back(
            {"phase", mark.name, mark.number, static_cast<double>(mark.begin_us), static_cast<double>(mark.end_us), 0});
    }
  const bool reported = std::ranges::any_of(phases, [](const Band& b) { return b.name == "forward" || b.name == "backward"; });
  if (!reported && !out.coarse && phases.size() < kMostBands)
    for (const analyze::PassBand& pass : analyze::pass_bands(engine, tile->t0, tile->t1))
      phases.push_back({"phase", pass.name, 0, static_cast<double>(pass.begin_us), static_cast<double>(pass.end_us), 0});
  assign_rows(phases);
  out.bands.insert(out.bands.end(), std::make_move_iterator(phases.begin()), std::make_move_iterator(phases.end()));
  for (const analyze::OomEvent& oom : trace.ooms().events)
    if (inside(oom.time_us, oom.time_us))
      out.points.push_back({"oom", analyze::failure_label(oom), static_cast<double>(oom.time_us)});
  return out;
}

Result<Place> EngineService::place(const PlaceParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const analyze::Overview& o = trace.overview();
  const std::uint64_t last = o.allocs + o.frees;
  std::vector<analyze::Moment> stops;
  if (params.go.ends_with("-peak") || params.go.ends_with("-step"))
    for (const analyze::Step& step : trace.steps().steps)
      stops.push_back(params.go.ends_with("-peak") ? step.peak_at : step.begin);
  if (const analyze::Place* place = main_place(engine); place != nullptr && params.go.ends_with("-peak"))
    stops.push_back(place->peak_at);
  std::sort(stops.begin(), stops.end());
  Place out;
  if (params.go == "next-event") {
    if (params.moment < last) out.moment = params.moment + 1;
  } else if (params.go == "previous-event") {
    if (params.moment > 0) out.moment = params.moment - 1;
  } else if (params.go.starts_with("next-")) {
    const auto next = std::upper_bound(stops.begin(), stops.end(), params.moment);
    if (next != stops.end()) out.moment = *next;
  } else if (params.go.starts_with("previous-")) {
    const auto next = std::lower_bound(stops.begin(), stops.end(), params.moment);
    if (next != stops.begin()) out.moment = *std::prev(next);
  } else {
    return fail(
        "invalid parameter \"go\": expected next-event, previous-event, next-step, previous-step, next-peak, previous-peak");
  }
  if (!out.moment) return out;
  out.t = static_cast<double>(engine.time_of(*out.moment));
  out.link = analyze::instant_text(engine, *out.moment);
  return out;
}

}  // namespace vramscope::serve
