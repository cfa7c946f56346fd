#include "serve/open_traces.h"

#include <sys/resource.h>

#include <algorithm>

namespace vramscope::serve {

std::size_t descriptors_for_traces() {
  constexpr std::size_t kShare = 2;
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / kShare : 0;
}

std::size_t most_open_traces() {
  constexpr std::size_t kPerTrace = 2;  // its file and its index
  constexpr std::size_t kOfOurs = 4;    // standard streams, the folder of sources
  return (std::max(descriptors_for_traces(), kOfOurs + kPerTrace) - kOfOurs) / kPerTrace;
}

}  // namespace vramscope::serve
