// Names for machine addresses, for the collector.
#pragma once

#include "collect/options.h"

namespace vramscope::cli {

// Reads each file once, when its first address arrives.
collect::NativeSymbols native_symbols();

}  // namespace vramscope::cli
