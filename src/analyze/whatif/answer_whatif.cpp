// The requests of a run, replayed with other allocators and settings.
#include <algorithm>

#include <fmt/format.h>

#include "analyze/whatif/candidates.h"
#include "analyze/whatif/changes.h"
#include "analyze/whatif/recorded.h"
#include "support/units.h"
#include "whatif/bounds/bounds.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr whatif::OrderBudget kOrders{20'000'000, 1, 12};

WhatifRow row_of(const Candidate& candidate, const RecordedPool& recorded, Bytes limit) {
  whatif::Scenario scenario = candidate.scenario;
  if (limit != 0) scenario.set_limit(limit);
  WhatifRow row;
  row.name = candidate.name;
  row.setting = candidate.setting;
  // A pool that takes its limit at once takes what it needs: the smallest limit that is enough.
  const bool at_once = scenario.kind == whatif::Scenario::Kind::bfc && !scenario.bfc.growth;
  const auto smallest = whatif::smallest_capacity(recorded.events, scenario);
  if (smallest) row.smallest = smallest->capacity;
  if (at_once && scenario.bfc.limit == whatif::kUnlimited && smallest) {
    row.reserved_low = row.reserved = row.reserved_high = smallest->capacity;
    row.device_calls = 1;
    return row;
  }
  const whatif::Spread spread = whatif::replay_orders(recorded.events, scenario, orders_for(recorded.events.size(), kOrders));
  row.reserved_low = spread.reserved.low;
  row.reserved = spread.reserved.median;
  row.reserved_high = spread.reserved.high;
  row.completes = spread.failed == 0;
  row.failed = spread.typical.failed_bytes;
  row.flushes = spread.typical.counters.flushes;
  row.device_calls = spread.typical.device_takes + spread.typical.device_returns;
  return row;
}

// Whether the replay with the settings of the recording does what the recording did.
bool is_exact(const RecordedPool& recorded) {
  whatif::Scenario scenario = recorded.scenario;
  scenario.device.recorded = recorded.calls;
  const auto allocator = whatif::make_allocator(scenario);
  whatif::replay(recorded.events, *allocator, whatif::OnFailure::go_on);
  return !allocator->device().differs_at() &&
         allocator->device().taken() + allocator->device().returned() <= recorded.calls.size() &&
         allocator->counters().reserved_peak == recorded.reserved_peak;
}

std::string range_of(const WhatifRow& row) {
  return row.reserved_low == row.reserved_high
             ? format_size(row.reserved)
             : fmt::format("{} to {}", format_size(row.reserved_low), format_size(row.reserved_high));
}

// The first setting whose worst case clearly beats the recording's best, without more work for the device.
const WhatifRow* advised(const Whatif& answer) {
  constexpr Bytes kWorthIt = Bytes{256} << 20;
  const WhatifRow& now = answer.rows.front();
  const WhatifRow* best = nullptr;
  for (const WhatifRow& row : answer.rows) {
    const Bytes gain = now.reserved_low - std::min(now.reserved_low, row.reserved_high);
    if (!row.completes || row.setting.empty() || gain < std::max<Bytes>(kWorthIt, now.reserved_low / 50)) continue;
    if (best == nullptr || row.reserved_high < best->reserved_high) best = &row;
  }
  return best;
}

std::string about_limit(const WhatifRow& row, Bytes limit) {
  if (!row.completes)
    return fmt::format("With a limit of {}, a request of {} fails", format_size(limit), format_size(row.failed));
  return fmt::format(
      "With a limit of {}, the run completes{}", format_size(limit),
      row.flushes == 0 ? "" : fmt::format(" after {} of its cache", support::format_plural(row.flushes, "flush", "flushes")));
}

std::string sentence_of(const Whatif& answer, const WhatifRequest& request) {
  const WhatifRow& now = answer.rows.front();
  const std::string needs = now.smallest ? fmt::format("; the run completes with {}", format_size(*now.smallest)) : "";
  if (request.limit != 0) {
    const WhatifRow& asked = request.allocator.empty() ? now : answer.rows.back();
    std::string out = about_limit(asked, request.limit);
    for (const WhatifRow& row : answer.rows)
      if (!asked.completes && row.completes) out += fmt::format("; {} completes", row.name);
    return out + ".";
  }
  if (!request.allocator.empty() && answer.rows.size() > 1) {
    const WhatifRow& other = answer.rows[1];
    return fmt::format("With {}, the pool would hold {} instead of {}, for {} of live blocks{}.", other.name, range_of(other),
                       range_of(now), format_size(answer.live),
                       other.smallest ? fmt::format("; the run completes with {}", format_size(*other.smallest)) : "");
  }
  std::string out = fmt::format("The pool holds {} for {} of live blocks{}", range_of(now), format_size(answer.live), needs);
  if (!answer.changes.empty()) return out + ".";
  if (const WhatifRow* best = advised(answer))
    return fmt::format("{}. {} would lower it to {}.", out, best->setting, range_of(*best));
  const bool tight = now.smallest && static_cast<double>(*now.smallest) <= 1.03 * static_cast<double>(answer.live);
  return out + (tight ? ". No allocator setting helps: lower what is live." : ". No other setting saves 256 MiB or more.");
}

}  // namespace

Result<Whatif> Engine::whatif(const WhatifRequest& request) const {
  auto recorded = recorded_pool(*state_, {.place = request.place, .where = request.where});
  if (!recorded) return std::unexpected(recorded.error());
  Whatif out;
  out.pool = state_->store.text(state_->store.dictionaries().pools[recorded->pool].name);
  out.settings = recorded->settings;
  out.recorded = recorded->reserved_peak;
  const auto changed = change_requests(state_->store, request, *recorded);
  if (!changed) return std::unexpected(changed.error());
  out.changes = changed->notes;
  out.confidence = changed->confidence;
  whatif::Work work(recorded->events.size());
  work.limit_replays(std::min<std::uint64_t>(recorded->events.size(), state_->store.reader().most_events()));
  recorded->scenario.device.work = &work;
  const auto wanted = candidates(*recorded, request.allocator);
  if (!wanted) return std::unexpected(wanted.error());
  if (out.changes.empty() && request.where.empty() && recorded->reserved_peak) out.exact = is_exact(*recorded);
  const whatif::Bounds bounds = whatif::bounds_of(recorded->events, recorded->quantum);
  out.requested = bounds.requested;
  out.live = bounds.live;
  out.per_stream = bounds.per_stream;
  out.paged = bounds.paged;
  out.packed = bounds.packed;
  for (const Candidate& candidate : *wanted) out.rows.push_back(row_of(candidate, *recorded, request.limit));
  if (work.exhausted()) return too_much_work();
  // The replay with the addresses of the recording does the same, so that no other order is of interest.
  if (WhatifRow& same = out.rows.front(); request.limit == 0 && out.exact.value_or(false))
    same.reserved_low = same.reserved = same.reserved_high = *out.recorded;
  out.assumptions = std::move(recorded->assumptions);
  out.sentence = sentence_of(out, request);
  return out;
}

}  // namespace vramscope::analyze
