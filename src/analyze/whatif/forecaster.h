// A run at other batch sizes: its events with the sizes of that batch, replayed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyze/attribute/categories.h"
#include "analyze/whatif/device_room.h"
#include "analyze/whatif/recorded.h"
#include "whatif/forecast/forecast.h"

namespace vramscope::analyze {

// What is live at the peak of the live bytes.
struct LivePeak {
  Bytes bytes = 0, uncertain = 0;
  Bytes optional = 0;  // of what is uncertain: workspaces that can be refused
  std::array<Bytes, kShown> by_category{};
};

class Forecaster {
 public:
  // Of the live bytes, as shares (device_room.h). The margin is what a batch that fits leaves free for the error.
  struct Errors {
    double least = kLeastError, most_margin = kMostError;
  };
  // `scalings` by block of the recording.
  Forecaster(const Store& store, const RecordedPool& recorded, std::vector<whatif::Scaling> scalings,
             const whatif::Scenario& scenario, const Errors& errors);
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  LivePeak live_peak(std::uint64_t batch) const;
  double error(const LivePeak& peak) const;
  FitRow row(std::uint64_t batch) const;
  // With `available` bytes for the pool, no request fails, in several orders of addresses and with a margin for the error.
  struct Trial {
    bool fits = false;
    std::uint64_t flushes = 0;
  };
  Trial trial(std::uint64_t batch, Bytes available) const;
  static constexpr std::uint64_t kLargestBatch = std::uint64_t{1} << 24;
  // Up to `most`; 0 = not even one.
  std::uint64_t largest_batch(Bytes available, std::uint64_t most = kLargestBatch) const;

 private:
  bool exhausted() const;
  void spend(std::uint64_t work) const;

  const Store& store_;
  const RecordedPool& recorded_;
  std::vector<whatif::Scaling> scalings_;
  std::vector<char> optional_;  // by block
  whatif::Scenario scenario_;
  Errors errors_;
};

}  // namespace vramscope::analyze
