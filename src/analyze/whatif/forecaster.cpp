#include "analyze/whatif/forecaster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyze/whatif/workspaces.h"

namespace vramscope::analyze {
namespace {

using whatif::Event;
using whatif::What;

constexpr unsigned kOrdersOfRange = 3;  // for the range of the pool's size
// A batch fits if it does so in every order of addresses that is tried: many of them if replays are short. A transformer that
// PyTorch could not train in 640 MiB failed in 1 of 24.
constexpr whatif::OrderBudget kOrdersOfTrial{200'000, 3, 48};
constexpr std::size_t kEventsInCache = 500'000;  // replays of more are slower per event

}  // namespace

Forecaster::Forecaster(const Store& store, const RecordedPool& recorded, std::vector<whatif::Scaling> scalings,
                       const whatif::Scenario& scenario, const Errors& errors)
    : store_(store), recorded_(recorded), scalings_(std::move(scalings)), scenario_(scenario), errors_(errors) {
  optional_ = optional_workspaces(store, recorded, scalings_);
  scenario_.optional = optional_;
}

LivePeak Forecaster::live_peak(std::uint64_t batch) const {
  const auto rounded = [&](std::uint32_t block) {
    const Bytes bytes = scalings_[block].at(static_cast<double>(batch));
    return (bytes + recorded_.quantum - 1) / recorded_.quantum * recorded_.quantum;
  };
  // First the peak, then what is live there.
  Bytes now = 0, peak = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < recorded_.events.size(); ++i) {
    const Event& event = recorded_.events[i];
    if (event.what == What::free) now -= rounded(event.block);
    if (event.what != What::alloc) continue;
    now += rounded(event.block);
    if (now > peak) {
      peak = now;
      at = i;
    }
  }
  LivePeak out{peak, 0, 0, {}};
  for (std::size_t i = 0; i < recorded_.events.size() && i <= at; ++i) {
    const Event& event = recorded_.events[i];
    if (!whatif::is_of_block(event)) continue;
    const Bytes bytes = event.what == What::alloc ? rounded(event.block) : Bytes{0} - rounded(event.block);
    out.by_category[static_cast<std::size_t>(category_of(store_, recorded_, event.block))] += bytes;
    if (scalings_[event.block].uncertain) out.uncertain += bytes;
    if (optional_[event.block] != 0) out.optional += bytes;
  }
  return out;
}

double Forecaster::error(const LivePeak& peak) const {
  const double share = peak.bytes == 0 ? 0 : static_cast<double>(peak.uncertain) / static_cast<double>(peak.bytes);
  return std::clamp(share, errors_.least, 1.0);
}

FitRow Forecaster::row(std::uint64_t batch) const {
  const auto events = whatif::substituted(recorded_.events, scalings_, static_cast<double>(batch));
  whatif::Scenario plenty = scenario_;
  plenty.bfc.limit = whatif::kUnlimited;
  plenty.torch.limit = 0;
  FitRow out;
  out.batch = batch;
  out.live = live_peak(batch).bytes;
  if (const auto smallest = whatif::smallest_capacity(events, plenty)) out.smallest = smallest->capacity;
  if (plenty.kind == whatif::Scenario::Kind::bfc && !plenty.bfc.growth) {
    out.reserved_low = out.reserved_high = out.smallest.value_or(0);
    return out;
  }
  const whatif::Spread spread = whatif::replay_orders(events, plenty, kOrdersOfRange);
  out.reserved_low = spread.reserved.low;
  out.reserved_high = spread.reserved.high;
  return out;
}

Forecaster::Trial Forecaster::trial(std::uint64_t batch, Bytes available) const {
  if (exhausted()) return {};
  spend(recorded_.events.size());
  const LivePeak peak = live_peak(batch);
  LivePeak needed = peak;
  needed.bytes -= peak.optional;
  needed.uncertain -= peak.optional;
  const Bytes usable =
      available - static_cast<Bytes>(static_cast<double>(available) * std::min(error(needed), errors_.most_margin));
  if (needed.bytes > usable) return {};
  const auto events = whatif::substituted(recorded_.events, scalings_, static_cast<double>(batch));
  whatif::Scenario limited = scenario_;
  limited.bfc.limit = usable;
  limited.torch.limit = std::min(limited.torch.limit, usable);
  limited.device.capacity = usable;
  const whatif::Spread spread =
      whatif::replay_orders(events, limited, whatif::orders_for(events.size(), kOrdersOfTrial), whatif::OnFailure::stop);
  spend(spread.orders * events.size() * (events.size() > kEventsInCache ? 2 : 1));
  return {spread.failed == 0, spread.typical.counters.flushes};
}

bool Forecaster::exhausted() const { return scenario_.device.work != nullptr && scenario_.device.work->exhausted(); }

void Forecaster::spend(std::uint64_t work) const {
  if (scenario_.device.work != nullptr) scenario_.device.work->spend(work);
}

std::uint64_t Forecaster::largest_batch(Bytes available, std::uint64_t most) const {
  std::uint64_t low = 0, high = 1;
  while (high <= most && trial(high, available).fits) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most + 1);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (trial(middle, available).fits ? low : high) = middle;
  }
  return low;
}

}  // namespace vramscope::analyze
