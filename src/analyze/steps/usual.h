// What is usual in a training run: one rule for all answers that compare steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/answers.h"

namespace vramscope::analyze {

// Of an even number of values the upper one; none without values.
template <typename T>
std::optional<T> median(std::vector<T> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return std::move(*middle);
}

// Indices of the steady steps, without those of another kind between them.
std::vector<std::size_t> steady_steps(const Steps& steps);

// Samples of a steady step: their median. It is the full batch where only the last one of each epoch is smaller, and the middle
// where sizes vary; the most frequent size may then be any of them. None if those of any steady step are unknown.
std::optional<std::uint64_t> usual_samples(const Steps& steps);

// The steady step with the median peak, among those that have the usual number of samples: where peaks differ by chance, the
// median of all may be a step with another batch. None without steady steps.
std::optional<std::size_t> usual_step(const Steps& steps);

}  // namespace vramscope::analyze
