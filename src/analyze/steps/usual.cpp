#include "analyze/steps/usual.h"

namespace vramscope::analyze {

std::vector<std::size_t> steady_steps(const Steps& steps) {
  std::vector<std::size_t> out;
  if (!steps.has_steady) return out;
  for (std::size_t i = steps.steady_first; i <= steps.steady_last && i < steps.steps.size(); ++i)
    if (!steps.steps[i].warmup && steps.steps[i].kind == steps.steps[steps.steady_first].kind) out.push_back(i);
  return out;
}

std::optional<std::uint64_t> usual_samples(const Steps& steps) {
  std::vector<std::uint64_t> samples;
  for (const std::size_t i : steady_steps(steps)) {
    if (!steps.steps[i].samples) return std::nullopt;
    samples.push_back(*steps.steps[i].samples);
  }
  return median(std::move(samples));
}

std::optional<std::size_t> usual_step(const Steps& steps) {
  const std::optional<std::uint64_t> samples = usual_samples(steps);
  std::vector<std::pair<Bytes, std::size_t>> by_peak;
  for (const std::size_t i : steady_steps(steps))
    if (!samples || steps.steps[i].samples == samples) by_peak.emplace_back(steps.steps[i].peak, i);
  const auto usual = median(std::move(by_peak));
  return usual ? std::optional(usual->second) : std::nullopt;
}

}  // namespace vramscope::analyze
