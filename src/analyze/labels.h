// Short labels: what stands beside a link, a step or a track, where a sentence has no room.
#pragma once

#include <string>

#include "analyze/api.h"

namespace vramscope::analyze {

// What is wrong with a run that leaks, in one word.
inline constexpr std::string_view kGrows = "grows";

// "none" for nothing.
std::string label_of_count(std::uint64_t count);
// "grows", "none", or "–" if that is unknown.
std::string label_of(const Leaks& leaks);
// "Step 20"; "evaluation 3" for a step that is not one of training.
std::string label_of(const Step& step);
// "dense_1", "steady": what of a view a finding is about; empty if it is the whole view.
std::string label_of(const Finding& finding);
// "1.2 GiB of 80.0 GiB"; without a total, "1.2 GiB".
std::string label_of(const Sample& sample);
// "GPU 0", also of what was allocated there directly from the driver.
std::string label_of_device(const Place& place);
// "1.2 GiB held at the end", of the pools of a place.
std::string label_of_pools(const Place& place);

// Figures of a run that is compared with others. The page capitalizes them.
inline constexpr std::string_view kSteadyPeakOfRun = "steady peak", kPeakOfRun = "peak", kLeftAfterStep = "left after a step",
                                  kPoolOfRun = "pool", kBlocksPerStep = "blocks per step", kSamplesPerStep = "samples per step";

inline constexpr std::string_view kNoRegions = "no regions were recorded";
inline constexpr std::string_view kNoHostSample = "not recorded";
// Why a track of the card is empty.
std::string_view label_without_samples(std::int64_t device);

}  // namespace vramscope::analyze
