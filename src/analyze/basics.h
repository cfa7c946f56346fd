// The basic types of requests and answers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::analyze {

using Bytes = std::uint64_t;

// A point in the order of events: the state after the first `Moment` events of the trace. 0 = nothing has happened yet. The
// order is that of sequence numbers; two moments can have the same time.
using Moment = std::uint64_t;
inline constexpr Moment kNever = ~Moment{0};

// What blocks can be grouped by. The names are the same in --by, in the filter language and in the addresses of the page.
enum class By : std::uint8_t {
  category,
  layer,
  op,
  line,
  stack,
  dtype,
  shape,
  size,
  phase,
  step,
  pool,
  stream,
  owner,
  region,
  name,
  known,
  device,
};
inline constexpr std::size_t kByCount = 17;

}  // namespace vramscope::analyze
