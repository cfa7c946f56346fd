// One engine for all inputs: targets that fuzz what is asked of a trace, not the trace.
#pragma once

#include "analyze/api.h"
#include "scratch.h"

namespace vramscope::fuzz {

inline const analyze::Engine& sample_engine() {
  static const analyze::Engine engine = [] {
    analyze::OpenOptions options;
    options.keep_index = false;
    return analyze::Engine::open(write_sample(), options).value();
  }();
  return engine;
}

}  // namespace vramscope::fuzz
