// Which pools may be added up, and the highest live total of each such place.
#pragma once

#include <span>
#include <vector>

#include "analyze/answers.h"
#include "analyze/grouper.h"
#include "analyze/step_measure.h"
#include "analyze/store.h"

namespace vramscope::analyze {

std::vector<Place> places_of(const trace::Dictionaries& words);
PoolSet pools_of(const Place& place, std::size_t pools);
// The place that answers are about: the device with the most bytes ever allocated at the tensor level; host only without one.
int main_place(const Store& store, const std::vector<Place>& places);

// What is kept in the index for each place.
struct PlacePeak {
  Bytes peak = 0, steady_peak = 0, end = 0;
  Moment peak_at = 0, steady_peak_at = 0;
  std::uint64_t allocs = 0;
};
std::vector<PlacePeak> measure_places(const Store& store, const std::vector<Place>& places, std::span<const Stretch> steady,
                                      unsigned threads);

}  // namespace vramscope::analyze
