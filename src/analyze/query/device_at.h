// What the card says, at any moment: the nearest sample, and what the driver allocated between the sample and the moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyze/query/state.h"

namespace vramscope::analyze {

struct DeviceAt {
  Bytes total = 0, used = 0;
  std::optional<Bytes> process;  // none: the card does not report who holds it
  Bytes others = 0;
  std::uint64_t sampled_us = 0;
  std::int64_t since = 0;  // what the driver level of this process changed by from the sample to the moment; negative: it shrank
  Bytes uncertain = 0;     // by how much it changed while the sample was taken: `used` and `process` may be off by that
};

inline constexpr std::string_view kNoSample = "no sample of the card was recorded";

// Nothing if the device was never sampled. Of the samples close to the moment, one that was taken while the driver level stood
// still is preferred.
std::optional<DeviceAt> device_at(const Engine::State& state, std::int64_t device, Moment at);

// "sampled 120 ms earlier; 1,024.0 MiB allocated since is added"; empty if the sample says it all.
std::string in_words(const DeviceAt& card, std::uint64_t time_us);

}  // namespace vramscope::analyze
