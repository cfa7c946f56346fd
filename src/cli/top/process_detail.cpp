#include "cli/top/process_detail.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/api.h"
#include "analyze/gen/texts.h"
#include "cli/show/terminal.h"
#include "cli/top/drawing.h"

namespace vramscope::cli::top {

namespace {

// Where things are, on the canvas.
struct Area {
  int y;       // the title
  int height;  // of the curve
  int right;   // end of the curve
  int first_line() const { return y + 1; }
  int last_line() const { return y + 1 + height; }
};

std::string state_of(const Process& process) {
  std::string now = process.recorded ? fmt::format("{} MiB live now", mib(process.live)) : "only device memory is known";
  if (process.step <= 0) return now;
  return fmt::format("step {}, {}{}", process.step, process.phase.empty() ? "" : process.phase + ", ", now);
}

void draw_curve(Canvas& canvas, const Area& area, const Process& process, std::uint64_t now_us, bool ascii) {
  constexpr int kScale = 10;  // the figures of the axis end here
  canvas.put(2, area.first_line(), "MiB live", kSoft);
  const Bytes top = std::max<Bytes>(1, process.peak);
  canvas.put_right(kScale, area.first_line() + 1, mib(process.peak), kSoft);
  if (process.steady_peak && *process.steady_peak < process.peak) {
    const int row =
        area.last_line() - static_cast<int>(static_cast<double>(*process.steady_peak) / static_cast<double>(top) * area.height);
    if (row > area.first_line() + 1 && row < area.last_line()) canvas.put_right(kScale, row, mib(*process.steady_peak), kSoft);
  }
  canvas.put_right(kScale, area.last_line(), "0", kSoft);
  const int left = kScale + 1;
  const int width = area.right - left - 1;
  plot(canvas, left, area.first_line() + 1, width, area.height, curve(process, now_us, 2 * width, top), {.colour = kLiveColour},
       ascii);
  canvas.put(left, area.last_line() + 1, "-60 s", kSoft);
  canvas.put_right(area.right - 1, area.last_line() + 1, "now", kSoft);
}

// Beside the curve: categories at the peak, then the largest blocks.
void draw_contents(Canvas& canvas, const Area& area, const Process& process, bool ascii) {
  int line = area.first_line();
  const int left = area.right + 2;
  const int right = canvas.width() - 2;
  canvas.put(left, line, process.steady_peak ? analyze::kSteadyPeak.words : analyze::kPeak.words, kSoft);
  canvas.put_right(right, line++, "MiB", kSoft);
  Bytes most = 1;
  for (const Category& part : process.at_peak) most = std::max(most, part.bytes);
  for (const Category& part : process.at_peak) {
    if (line > area.last_line()) break;
    canvas.put(left, line, part.name, kText);
    canvas.put_right(left + 26, line, mib(part.bytes), kText);
    canvas.fill(left + 28, line++,
                std::max(1, static_cast<int>(12 * static_cast<double>(part.bytes) / static_cast<double>(most))),
                ascii ? "#" : "■", {.colour = category_colour(part.name)});
  }
  if (line + 1 <= area.last_line() && !process.largest.empty()) {
    canvas.put(left, ++line, "largest", kSoft);
    ++line;
  }
  for (const Category& part : process.largest) {
    if (line > area.last_line() + 1) break;
    canvas.put(left, line, printable(part.name, 30), kText);
    canvas.put_right(right, line++, mib(part.bytes), kText);
  }
}

}  // namespace

int draw_detail(Canvas& canvas, int y, int height, const Process& process, std::uint64_t now_us, bool ascii) {
  const int curve_height = std::min(10, height - 3);
  if (curve_height < 3) return y;
  const int x = canvas.put(1, y, fmt::format("{}  {}", process.pid, printable(process.command, 30)), kStrong);
  canvas.put(x + 3, y, state_of(process), kText);
  if (!process.recorded) return y + 1;
  const bool has_side = canvas.width() >= 110;
  const Area area{y, curve_height, has_side ? canvas.width() - 44 : canvas.width() - 2};
  draw_curve(canvas, area, process, now_us, ascii);
  if (has_side) draw_contents(canvas, area, process, ascii);
  return area.last_line() + 2;
}

}  // namespace vramscope::cli::top
