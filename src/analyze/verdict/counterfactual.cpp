#include "analyze/verdict/counterfactual.h"

#include <algorithm>

#include "analyze/query/grouper.h"

namespace vramscope::analyze {
namespace {

// Whether a moment is in one of the stretches, which rise. Moments must rise too.
class Within {
 public:
  explicit Within(const std::vector<Stretch>& stretches) : stretches_(stretches) {}
  bool operator()(Moment at) {
    while (next_ < stretches_.size() && stretches_[next_].to < at) ++next_;
    return next_ < stretches_.size() && at >= stretches_[next_].from;
  }

 private:
  const std::vector<Stretch>& stretches_;
  std::size_t next_ = 0;
};

}  // namespace

std::optional<Bytes> saving_if(const Engine::State& state, const Place& place, const KeptBytes& kept) {
  const Store& store = state.store;
  if (store.events() > kMostEventsOfWalk) return std::nullopt;
  const std::vector<Stretch> whole = {{0, store.events()}};
  Within counts(place.steady ? state.steady.training : whole);
  Bytes before = 0, after = 0, peak_before = 0, peak_after = 0;
  walk(store, Grouper(store, state.pools(place), nullptr), 0, store.events(),
       [&](std::uint64_t pos, std::uint8_t, Bytes bytes, bool is_free) {
         const Bytes left = kept(store.ref[pos] >> 1, bytes);
         before += is_free ? Bytes{0} - bytes : bytes;
         after += is_free ? Bytes{0} - left : left;
         if (is_free || !counts(pos + 1)) return;
         peak_before = std::max(peak_before, before);
         peak_after = std::max(peak_after, after);
       });
  return peak_before - std::min(peak_before, peak_after);
}

}  // namespace vramscope::analyze
