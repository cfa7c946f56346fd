// The equations of memory at one moment, each with its residual. Nothing is spread over other lines, nothing is hidden.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/framework.h"
#include "analyze/index/address_map.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/device_at.h"
#include "analyze/query/driver_level.h"
#include "analyze/query/state.h"
#include "analyze/verdict/recent_requests.h"
#include "analyze/verdict/remedies.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;
using Parts = std::vector<std::pair<std::string, Bytes>>;

// The last sample at or before a time, or the first one after it if there is none.
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

// What the contexts of a device took; nothing if none was recorded.
std::optional<Bytes> context_bytes(const Store& store, std::int64_t device, Moment at) {
  std::optional<Bytes> sum;
  for (const auto& context : store.contexts)
    if (context.row.device == device && context.pos <= at && context.row.bytes != trace::kNone)
      sum = sum.value_or(0) + context.row.bytes;
  return sum;
}

// The live blocks of the ledger's pools; all but `live` cover only the blocks that match the filter.
struct LiveBlocks {
  Bytes live = 0, matching = 0, requested = 0;
  std::array<Bytes, kShown> by_category{};
};

LiveBlocks live_blocks(const Store& store, const PoolSet& pools, const Filter& filter, Moment at) {
  LiveBlocks out;
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (kind.pool >= pools.size() || pools[kind.pool] == 0) return;
    out.live += kind.granted;
    if (!filter.matches(alloc)) return;
    out.matching += kind.granted;
    out.requested += std::min(kind.requested, kind.granted);
    out.by_category[static_cast<std::size_t>(shown(store.attributes_of(alloc).category()))] += kind.granted;
  });
  return out;
}

LedgerLine line_of(std::string name, std::optional<Bytes> bytes, Parts parts, std::string note = {}) {
  std::optional<std::int64_t> residual;
  if (bytes && !parts.empty()) {
    residual = static_cast<std::int64_t>(*bytes);
    for (const auto& [part, part_bytes] : parts) *residual -= static_cast<std::int64_t>(part_bytes);
  }
  LedgerLine out;
  out.name = std::move(name);
  out.bytes = bytes;
  out.parts = std::move(parts);
  out.residual = residual;
  out.note = std::move(note);
  return out;
}

LedgerLine device_line(const std::optional<DeviceAt>& card, std::uint64_t time_us) {
  if (!card) return line_of("device used", {}, {}, std::string(kNoSample));
  LedgerLine out = card->process
                       ? line_of("device used", card->used, {{"this process", *card->process}, {"other processes", card->others}},
                                 in_words(*card, time_us))
                       : line_of("device used", card->used, {}, "the card does not report which process holds it");
  out.uncertain = card->uncertain;
  return out;
}

// A sample that was taken during an allocation, or memory that the driver counts in larger units than it reports.
std::string why_negative(const DeviceAt& card) {
  return card.uncertain > 0 ? "negative because the driver level changed while the card was sampled"
                            : "negative because the card reports less for this process than the driver gave it";
}

LedgerLine process_line(const std::optional<DeviceAt>& card, const DriverLevel& driver, std::optional<Bytes> context) {
  const std::optional<Bytes> bytes = card ? card->process : std::nullopt;
  Parts parts;
  if (driver.recorded) parts = {{"driver level", driver.total}, {"driver rounding", driver.rounding}};
  if (driver.recorded && context) parts.emplace_back("context", *context);
  LedgerLine out =
      line_of("this process", bytes, std::move(parts),
              driver.recorded ? "the rest is modules and kernels loaded since, and memory the driver keeps for itself" : "");
  if (card) out.uncertain = card->uncertain;
  if (out.residual.value_or(0) < 0) out.note = why_negative(*card);
  return out;
}

LedgerLine driver_line(const DriverLevel& driver) {
  if (!driver.recorded) return line_of("driver level", {}, {}, "the driver level was not recorded");
  Parts parts = {{"pool regions", driver.regions}};
  parts.insert(parts.end(), driver.owners.begin(), driver.owners.end());
  if (driver.cached > 0) parts.emplace_back("cached by stream-ordered pools and graphs", driver.cached);
  std::string note;
  if (driver.managed > 0)
    note = fmt::format("plus {} of managed memory, which the card assigns to no process", format_size(driver.managed));
  return line_of("driver level", driver.total, std::move(parts), std::move(note));
}

Bytes sum_of_regions(const Layout& layout) {
  Bytes sum = 0;
  for (const HeldRegion& region : layout.regions) sum += region.bytes;
  return sum;
}

LedgerLine pool_line(const Layout& layout, Bytes live, Bytes largest_request) {
  if (layout.regions.empty()) return line_of("pool regions", {}, {}, "no region was recorded");
  Parts parts = {{"live blocks", live - std::min(live, layout.outside)}, {"cached free", layout.free}};
  const Bytes regions = sum_of_regions(layout);
  if (is_nearly_empty(live, regions)) return line_of("pool regions", regions, std::move(parts));
  Bytes unusable = 0;
  for (const Hole& hole : layout.holes)
    if (hole.bytes < largest_request) unusable += hole.bytes;
  return line_of("pool regions", regions, std::move(parts),
                 fmt::format("{} of the free memory is in holes too small for the largest recent request ({})",
                             format_size(unusable), format_size(largest_request)));
}

std::vector<LedgerLine> block_lines(const LiveBlocks& blocks, bool filtered) {
  const Bytes matching = blocks.matching;
  const std::string which = filtered ? "matching blocks" : "live blocks";
  std::vector<LedgerLine> out;
  if (filtered)
    out.push_back(line_of("live blocks", blocks.live, {{"matching blocks", matching}, {"other blocks", blocks.live - matching}}));
  out.push_back(line_of(which, matching, {{"requested", blocks.requested}, {"rounding and slack", matching - blocks.requested}}));
  Parts categories;
  for (std::size_t c = 0; c < kShown; ++c)
    if (blocks.by_category[c] > 0 || c == static_cast<std::size_t>(Shown::unknown))
      categories.emplace_back(name_of(static_cast<Shown>(c)), blocks.by_category[c]);
  out.push_back(line_of(which + " by category", matching, std::move(categories)));
  return out;
}

// Memory of the host: that of the process, and of each host place except the one that the ledger is about.
std::vector<LedgerLine> host_lines(const Engine& engine, const Place& ledger_place, Moment at, std::uint64_t time_us) {
  const Engine::State& state = engine.state();
  std::vector<LedgerLine> out;
  if (const auto* host = sample_at(state.store.host_samples, time_us, [](const trace::HostSample&) { return true; })) {
    out.push_back(line_of("resident set", host->rss, {}));
    if (host->pinned > 0) out.push_back(line_of("pinned", host->pinned, {}));
  }
  for (std::size_t i = 0; i < state.places.size(); ++i)
    if (const Place& place = state.places[i]; place.device < 0 && &place != &ledger_place)
      out.push_back(line_of(place.name, engine.live_at(at, static_cast<int>(i)), {}));
  return out;
}

// Residuals of more than 1 % of the card are worth a closer look.
void mark_unexplained(std::vector<LedgerLine>& lines, Bytes card) {
  for (LedgerLine& line : lines) {
    const std::int64_t residual = line.residual.value_or(0);
    line.unexplained = card > 0 && static_cast<Bytes>(residual < 0 ? -residual : residual) > card / 100;
  }
}

// One unit for all figures, chosen by the blocks: in MiB, those of a small model would all read 0.0.
std::string_view common_unit(const std::vector<LedgerLine>& lines) {
  const auto blocks = std::ranges::find(lines, "live blocks", &LedgerLine::name);
  const Bytes bytes = blocks != lines.end() ? blocks->bytes.value_or(0) : 0;
  return bytes == 0 ? "MiB" : support::unit_for(bytes).name;
}

std::string framework_name(const Store& store, const Place& place) {
  for (std::uint32_t p : place.pools)
    if (const auto name = framework(store.dictionaries().pools[p].framework).name; !name.empty()) return std::string(name);
  return "The pool";
}

// The pool holds more than twice what the program ever needs, and most of the card (of its own limit if the card is unknown).
bool took_card(const Place& place, Bytes regions, Bytes card) {
  if (regions <= 2 * place.peak) return false;
  return card == 0 ? place.limit > 0 && regions * 10 >= place.limit * 9 : regions * 2 > card;
}

std::string usage_sentence(const std::string& framework, const Place& place, const std::optional<DeviceAt>& card,
                           const Layout& layout, Bytes live) {
  const Bytes regions = sum_of_regions(layout);
  if (regions == 0) return fmt::format("{} is live on {}.", format_size(live), place.name);
  if (!card)
    return fmt::format("{} holds {}: {} live blocks, {} free.", framework, format_size(regions), format_size(live),
                       format_size(layout.free));
  return fmt::format("{} of the card's {} is used: {} holds {}, of which {} is live blocks.", format_size(card->used),
                     format_size(card->total), framework, format_size(regions), format_size(live));
}

}  // namespace

Result<Ledger> Engine::ledger(std::string_view at_word, int place_index, std::string_view filter_text) const {
  const State& state = *state_;
  const Store& store = state.store;
  const auto at = state.resolve(at_word, place_index);
  if (!at) return std::unexpected(at.error());
  const auto found = state.place(place_index);
  if (!found) return std::unexpected(found.error());
  const auto filter = state.filter(filter_text, *at, place_index);
  if (!filter) return std::unexpected(filter.error());
  const Place& place = **found;
  const PoolSet pools = state.pools(place);
  const std::uint64_t time_us = store.time_of(*at);
  const Layout layout = layout_at(store, place, pools, *at);
  const LiveBlocks blocks = live_blocks(store, pools, *filter, *at);
  const std::optional<DeviceAt> card = device_at(state, place.device, *at);

  Ledger out;
  out.at = *at;
  out.time_us = time_us;
  out.step = state.step_number(*at);
  out.place = place.name;
  out.card = card ? card->total : 0;
  if (place.device >= 0) {
    const DriverLevel driver = driver_level(state, place.device, layout.regions, *at);
    out.lines = {device_line(card, time_us), process_line(card, driver, context_bytes(store, place.device, *at)),
                 driver_line(driver)};
  }
  const Bytes largest_request =
      layout.regions.empty() ? 0 : largest_recent_request(store, pools, fragmented_failures(state, place), *at);
  out.lines.push_back(pool_line(layout, blocks.live, largest_request));
  std::ranges::move(block_lines(blocks, !filter_text.empty()), std::back_inserter(out.lines));
  mark_unexplained(out.lines, out.card);
  out.unit = common_unit(out.lines);
  out.host = host_lines(*this, place, *at, time_us);

  const std::string framework = framework_name(store, place);
  const Bytes regions = sum_of_regions(layout);
  if (!filter_text.empty()) {
    out.sentence = fmt::format("{} of the {} that is live matches \"{}\".", format_size(blocks.matching),
                               format_size(blocks.live), filter_text);
  } else if (took_card(place, regions, out.card)) {
    out.sentence =
        fmt::format("{} holds {}, but the model needs at most {}.", framework, format_size(regions), format_size(place.peak));
    out.advice = remedy_for(Remedy::return_cached_memory, framework_of(store, place));
  } else {
    out.sentence = usage_sentence(framework, place, card, layout, blocks.live);
  }
  return out;
}

}  // namespace vramscope::analyze
