// How many traces can be open at once.
#pragma once

#include <cstddef>

namespace vramscope::serve {

// Of the process's descriptors (ulimit -n), half are for its visitors and everything else.
std::size_t descriptors_for_traces();
std::size_t most_open_traces();

}  // namespace vramscope::serve
