// Places: pools whose bytes may be added up, with the highest live total of each place.
#pragma once

#include <span>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"
#include "analyze/steps/measure.h"

namespace vramscope::analyze {

std::vector<Place> places_of(const trace::Dictionaries& dictionaries);
PoolSet pools_of(const Place& place, std::size_t pools);
// The place that answers are about by default: the device with the most bytes allocated at the tensor level; the host only if
// there is none.
int main_place(const Store& store, const std::vector<Place>& places);

// What the index stores for each place.
struct PlacePeak {
  Bytes peak = 0, steady_peak = 0, end = 0;
  Moment peak_at = 0, steady_peak_at = 0;
  std::uint64_t allocs = 0;
};
std::vector<PlacePeak> measure_places(const Store& store, const std::vector<Place>& places, std::span<const Stretch> steady,
                                      unsigned threads);

}  // namespace vramscope::analyze
