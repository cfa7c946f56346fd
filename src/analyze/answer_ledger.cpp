// The equations of memory at one moment, each with its residual. Nothing is spread over other lines, nothing is hidden.
#include <algorithm>

#include <fmt/format.h>

#include "analyze/address_map.h"
#include "analyze/categories.h"
#include "analyze/driver_level.h"
#include "analyze/lifetime.h"
#include "analyze/recent.h"
#include "analyze/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;
using Parts = std::vector<std::pair<std::string, Bytes>>;

// The last sample at or before a time; the first one after it where there is none.
template <typename Row, typename Match>
const Row* sample_at(std::span<const Stamped<Row>> samples, std::uint64_t time_us, Match&& match) {
  const Row* out = nullptr;
  for (const auto& s : samples) {
    if (!match(s.row)) continue;
    if (s.time_us > time_us && out != nullptr) break;
    out = &s.row;
    if (s.time_us > time_us) break;
  }
  return out;
}

void close(LedgerLine& line) {
  if (!line.bytes || line.parts.empty()) return;
  auto rest = static_cast<std::int64_t>(*line.bytes);
  for (auto& [name, bytes] : line.parts) rest -= static_cast<std::int64_t>(bytes);
  line.residual = rest;
}

std::string framework_name(const Store& store, const Place& place) {
  for (std::uint32_t p : place.pools) switch (store.words().pools[p].framework) {
      case trace::Framework::tensorflow:
        return "TensorFlow";
      case trace::Framework::pytorch:
        return "PyTorch";
      case trace::Framework::jax:
        return "JAX";
      default:
        break;
    }
  return "The pool";
}

}  // namespace

Result<Ledger> Engine::ledger(std::string_view at_word, int place_index, std::string_view filter_text) const {
  const State& s = *state_;
  const Store& store = s.store;
  auto at = s.resolve(at_word, place_index);
  if (!at) return std::unexpected(at.error());
  auto where = s.place(place_index);
  if (!where) return std::unexpected(where.error());
  auto filter = s.filter(filter_text, *at, place_index);
  if (!filter) return std::unexpected(filter.error());
  const Place& place = **where;
  Ledger out;
  out.at = *at;
  out.time_us = store.time_of(*at);
  out.step = s.step_number(*at);
  out.place = place.name;
  Layout layout = layout_at(store, place, s.pools(place), *at);
  Bytes regions = 0, live = 0, matching = 0, requested = 0;
  for (const HeldRegion& r : layout.regions) regions += r.bytes;
  std::vector<Bytes> category(kShown, 0);
  PoolSet pools = s.pools(place);
  for_each_live(store, *at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (kind.pool >= pools.size() || pools[kind.pool] == 0) return;
    live += kind.granted;
    if (!filter->matches(alloc)) return;
    matching += kind.granted;
    requested += std::min(kind.requested, kind.granted);
    category[static_cast<std::size_t>(shown(store.note_of(alloc).category()))] += kind.granted;
  });
  DriverLevel driver = driver_level(s, place.device, layout.regions, *at);
  auto is_mine = [&](const trace::DeviceSample& d) { return d.device == place.device; };
  const trace::DeviceSample* sample = place.device < 0 ? nullptr : sample_at(store.device_samples, out.time_us, is_mine);
  Bytes context = 0;
  bool has_context = false;
  for (const auto& c : store.contexts)
    if (c.row.device == place.device && c.pos <= *at) context += c.row.bytes, has_context = true;

  if (place.device >= 0) {
    LedgerLine used{"device used", {}, {}, {}, {}}, process{"this process", {}, {}, {}, {}},
        level{"driver level", {}, {}, {}, {}};
    if (sample != nullptr) {
      out.card = sample->total;
      used.bytes = sample->used;
      if (sample->process != trace::kNone) {
        process.bytes = sample->process;
        used.parts = {{"this process", sample->process}, {"other processes", sample->others}};
      } else {
        used.note = "the card does not say which process holds it";
      }
    } else {
      used.note = "no sample of the card was recorded";
    }
    if (driver.recorded) {
      level.bytes = driver.total;
      level.parts = {{"pool regions", driver.regions}};
      for (auto& [owner, bytes] : driver.owners) level.parts.emplace_back(owner, bytes);
      if (driver.cached > 0) level.parts.emplace_back("cached by stream-ordered pools and graphs", driver.cached);
      if (driver.managed > 0)
        level.note = fmt::format("and {} of managed memory, which the card counts for no process", format_size(driver.managed));
      process.parts.emplace_back("driver level", driver.total);
      process.parts.emplace_back("driver rounding", driver.rounding);
      if (has_context) process.parts.emplace_back("context", context);
      process.note = "the rest is modules and kernels loaded since, and what the driver keeps for itself";
    } else {
      level.note = "the driver level was not recorded";
    }
    for (LedgerLine* line : {&used, &process, &level}) {
      close(*line);
      out.lines.push_back(std::move(*line));
    }
  }
  LedgerLine held{"pool regions", {}, {}, {}, {}};
  if (!layout.regions.empty()) {
    Bytes request = largest_recent_request(store, pools, fragmented_failures(s, place), *at), unusable = 0;
    for (const Hole& h : layout.holes) unusable += h.bytes < request ? h.bytes : 0;
    held.bytes = regions;
    held.parts = {{"live blocks", live - std::min(live, layout.outside)}, {"cached free", layout.free}};
    held.note = fmt::format("{} of the free bytes are in holes too small for the largest recent request ({})",
                            format_size(unusable), format_size(request));
  } else {
    held.note = "no region was recorded";
  }
  close(held);
  std::string which = filter_text.empty() ? "live blocks" : "matching blocks";
  LedgerLine asked{which, matching, {{"requested", requested}, {"rounding and slack", matching - requested}}, {}, {}};
  close(asked);
  LedgerLine sorted{which + " by category", matching, {}, {}, {}};
  for (std::size_t c = 0; c < kShown; ++c)
    if (category[c] > 0 || c == static_cast<std::size_t>(Shown::unknown))
      sorted.parts.emplace_back(name_of(static_cast<Shown>(c)), category[c]);
  close(sorted);
  out.lines.push_back(std::move(held));
  if (!filter_text.empty()) {
    LedgerLine split{"live blocks", live, {{"matching blocks", matching}, {"other blocks", live - matching}}, {}, {}};
    close(split);
    out.lines.push_back(std::move(split));
  }
  out.lines.push_back(std::move(asked));
  out.lines.push_back(std::move(sorted));

  if (const auto* host = sample_at(store.host_samples, out.time_us, [](const trace::HostSample&) { return true; })) {
    out.host.push_back({"resident set", host->rss, {}, {}, {}});
    if (host->pinned > 0) out.host.push_back({"pinned", host->pinned, {}, {}, {}});
  }
  for (std::size_t i = 0; i < s.places.size(); ++i)
    if (s.places[i].device < 0 && &s.places[i] != &place)
      out.host.push_back({s.places[i].name, live_at(*at, static_cast<int>(i)), {}, {}, {}});

  if (!filter_text.empty()) {
    out.sentence = fmt::format("{} of the {} that are live match '{}'.", format_size(matching), format_size(live), filter_text);
    return out;
  }
  std::string framework = framework_name(store, place);
  Bytes need = place.peak;
  bool took = regions > 2 * need && (out.card == 0 ? place.limit > 0 && regions * 10 >= place.limit * 9 : regions * 2 > out.card);
  if (took) {
    out.sentence = fmt::format("{} holds {}, the model needs {} at most.", framework, format_size(regions), format_size(need));
    out.advice = "set memory growth (tf.config.experimental.set_memory_growth) or a limit of your own";
  } else if (sample != nullptr && regions > 0) {
    out.sentence =
        fmt::format("{} of the card's {} are used: {} holds {}, of which {} are live blocks.", format_size(sample->used),
                    format_size(sample->total), framework, format_size(regions), format_size(live));
  } else if (regions > 0) {
    out.sentence = fmt::format("{} holds {}: {} live blocks, {} free.", framework, format_size(regions), format_size(live),
                               format_size(layout.free));
  } else {
    out.sentence = fmt::format("{} are live on {}.", format_size(live), place.name);
  }
  return out;
}

}  // namespace vramscope::analyze
