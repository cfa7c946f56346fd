// Time beside memory: how many samples the steps process, and how long they take.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/answers.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

// Samples of each step, as the training loop or its dataset reports them; by index into store.steps.
std::vector<std::optional<std::uint64_t>> samples_of_steps(const Store& store);

// Fills step_us, interval_us, samples_per_s and pace from the steps, which are complete.
void measure_pace(Steps& steps);

// "one every 4.5 ms, 7,100 samples per second"; empty if the interval is unknown.
std::string pace_in_words(std::optional<std::uint64_t> interval_us, std::optional<double> samples_per_s);

}  // namespace vramscope::analyze
