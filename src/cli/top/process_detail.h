// The selected process in a frame of `vramscope top`: its curve, what its peak is made of, its largest blocks.
#pragma once

#include <cstdint>

#include "cli/top/canvas.h"
#include "cli/top/model.h"

namespace vramscope::cli::top {

// Draws from line `y` on, in at most `height` lines, or nothing where that is too few. Returns the line after it.
int draw_detail(Canvas& canvas, int y, int height, const Process& process, std::uint64_t now_us, bool ascii);

}  // namespace vramscope::cli::top
