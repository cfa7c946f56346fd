#include "analyze/query/device_at.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "analyze/index/lifetime.h"
#include "analyze/query/driver_level.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

// The card is read shortly before a sample gets its time. An allocation is recorded after the call that made it, a free before.
constexpr std::uint64_t kReadUs = 50'000, kCallUs = 20'000;
constexpr std::size_t kMostCandidates = 8;

using CardSample = Stamped<trace::DeviceSample>;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

// What one process holds on a device according to its own events: exact at every moment, but without what nobody records.
class Recorded {
 public:
  Recorded(const Engine::State& state, std::int64_t device) : state_(state), device_(device) {
    for (const Place& place : state.places)
      if (place.device == device && !place.name.ends_with("addresses")) (place.driver ? driver_ : tensor_).push_back(&place);
  }

  Bytes at(Moment at) const {
    if (!driver_.empty()) {
      const DriverLevel level = driver_level(state_, device_, {}, at);
      return level.total + level.rounding;
    }
    Bytes sum = 0;
    for (const Place* place : tensor_) sum += state_.regions_at(*place, at);
    return sum;
  }

  // The difference between the most and the least that was held between two moments.
  Bytes spread(Moment from, Moment to) const {
    std::int64_t now = 0, low = 0, high = 0;
    const auto change = [&](Bytes bytes, bool less) {
      now += less ? -static_cast<std::int64_t>(bytes) : static_cast<std::int64_t>(bytes);
      low = std::min(low, now);
      high = std::max(high, now);
    };
    for (const Place* place : driver_)
      walk(state_.store, Grouper(state_.store, state_.pools(*place), nullptr), from, to,
           [&](std::uint64_t, std::uint8_t, Bytes bytes, bool is_free) { change(bytes, is_free); });
    for (const auto& region : state_.store.regions) {
      if (region.pos < from || region.pos >= to) continue;
      const auto pool = static_cast<std::uint32_t>(region.row.pool);
      const auto holds = [pool](const Place* place) { return std::ranges::find(place->pools, pool) != place->pools.end(); };
      if (std::ranges::any_of(driver_.empty() ? tensor_ : driver_, holds)) change(region.row.bytes, region.row.returned);
    }
    return static_cast<Bytes>(high - low);
  }

 private:
  const Engine::State& state_;
  std::int64_t device_;
  std::vector<const Place*> driver_, tensor_;
};

// The samples of a device that are closest to a time, the closest first. Those from before the process was on the device do not
// have its context, whose size is not among the driver's events.
std::vector<const CardSample*> closest(const Store& store, std::int64_t device, std::uint64_t time_us) {
  std::vector<const CardSample*> out;
  for (const CardSample& sample : store.device_samples)
    if (sample.row.device == device) out.push_back(&sample);
  if (std::ranges::any_of(out, [](const CardSample* sample) { return sample->row.process != 0; }))
    std::erase_if(out, [](const CardSample* sample) { return sample->row.process == 0; });
  const auto nearer = [time_us](const CardSample* a, const CardSample* b) {
    return distance(a->time_us, time_us) < distance(b->time_us, time_us);
  };
  const std::size_t kept = std::min(out.size(), kMostCandidates);
  std::ranges::partial_sort(out, out.begin() + static_cast<std::ptrdiff_t>(kept), nearer);
  out.resize(kept);
  return out;
}

Bytes moved(Bytes bytes, std::int64_t by) {
  const Bytes size = static_cast<Bytes>(by < 0 ? -by : by);
  return by < 0 ? bytes - std::min(bytes, size) : bytes + size;
}

}  // namespace

std::optional<DeviceAt> device_at(const Engine::State& state, std::int64_t device, Moment at) {
  const Store& store = state.store;
  if (device < 0) return std::nullopt;
  const std::vector<const CardSample*> candidates = closest(store, device, store.time_of(at));
  if (candidates.empty()) return std::nullopt;
  const Recorded recorded(state, device);
  const auto spread_around = [&](const CardSample& sample) {
    const std::uint64_t from = sample.time_us - std::min(sample.time_us, kReadUs);
    return recorded.spread(store.moment_at(from), store.moment_at(sample.time_us + kCallUs));
  };
  const CardSample* chosen = candidates.front();
  Bytes uncertain = spread_around(*chosen);
  for (const CardSample* other : candidates) {
    if (uncertain == 0) break;
    const Bytes spread = spread_around(*other);
    if (spread < uncertain) {
      chosen = other;
      uncertain = spread;
    }
  }
  const trace::DeviceSample& row = chosen->row;
  DeviceAt out;
  out.total = row.total;
  out.sampled_us = chosen->time_us;
  out.uncertain = uncertain;
  out.since =
      static_cast<std::int64_t>(recorded.at(at)) - static_cast<std::int64_t>(recorded.at(store.moment_at(chosen->time_us)));
  out.used = moved(row.used, out.since);
  if (row.process != trace::kNone) {
    out.process = moved(row.process, out.since);
    out.others = row.others != trace::kNone ? row.others : 0;
  }
  return out;
}

std::string in_words(const DeviceAt& card, std::uint64_t time_us) {
  if (card.since == 0 && card.uncertain == 0) return {};
  const Bytes size = static_cast<Bytes>(card.since < 0 ? -card.since : card.since);
  const bool earlier = card.sampled_us <= time_us;
  std::string out =
      fmt::format("sampled {} {}", support::format_duration(distance(card.sampled_us, time_us)), earlier ? "earlier" : "later");
  if (card.since != 0)
    out += fmt::format("; {} that was {} in between is {}", support::format_size(size),
                       (card.since > 0) == earlier ? "allocated" : "freed", card.since > 0 ? "added" : "subtracted");
  if (card.uncertain != 0)
    out += fmt::format("; may be off by {}, which changed during the sample", support::format_size(card.uncertain));
  return out;
}

}  // namespace vramscope::analyze
