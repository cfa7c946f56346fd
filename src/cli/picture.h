// The chart of `export --to svg` as a PNG, drawn by a program of this machine that can draw SVG.
#pragma once

#include "exporters/format.h"

namespace vramscope::cli {

extern const exporters::Format kPng;

}  // namespace vramscope::cli
