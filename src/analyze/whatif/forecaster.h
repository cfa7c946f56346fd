// A run at other batch sizes: its events with the sizes of that batch, replayed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyze/attribute/categories.h"
#include "analyze/whatif/recorded.h"
#include "whatif/forecast/forecast.h"

namespace vramscope::analyze {

// What is live at the peak of the live bytes.
struct LivePeak {
  Bytes bytes = 0, uncertain = 0;
  std::array<Bytes, kShown> by_category{};
};

class Forecaster {
 public:
  // `scalings` by block of the recording. `least_error`: of the live bytes, as a share.
  Forecaster(const Store& store, const RecordedPool& recorded, std::vector<whatif::Scaling> scalings,
             const whatif::Scenario& scenario, double least_error);

  LivePeak live_peak(std::uint64_t batch) const;
  double error(const LivePeak& peak) const;
  FitRow row(std::uint64_t batch) const;
  // With `available` bytes for the pool, no request fails, in several orders of addresses and with a margin for the error.
  struct Trial {
    bool fits = false;
    std::uint64_t flushes = 0;
  };
  Trial trial(std::uint64_t batch, Bytes available) const;
  // 0 = not even one.
  std::uint64_t largest_batch(Bytes available) const;

 private:
  bool exhausted() const;
  void spend(std::uint64_t work) const;

  const Store& store_;
  const RecordedPool& recorded_;
  std::vector<whatif::Scaling> scalings_;
  whatif::Scenario scenario_;
  double least_error_;
};

}  // namespace vramscope::analyze
