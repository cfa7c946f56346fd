#include "cli/top/process_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/show/terminal.h"
#include "cli/top/drawing.h"
#include "support/units.h"

namespace vramscope::cli::top {

namespace {

constexpr std::int32_t kSelectedColour = 0x1b3044;

struct Column {
  const char* head;
  int width;  // at least
  bool left;
  int drop;  // at narrow screens the highest goes first
};
enum { kPid, kCommand, kFramework, kGpu, kDevice, kPool, kLiveNow, kPeak, kSteady, kGrowth, kStep, kPhase, kPlot, kColumnCount };
constexpr std::array<Column, kColumnCount> kColumns = {{{"PID", 7, true, 0},
                                                        {"COMMAND", 14, true, 0},
                                                        {"FRAMEWORK", 12, true, 6},
                                                        {"GPU", 4, false, 0},
                                                        {"DEVICE", 9, false, 0},
                                                        {"POOL", 9, false, 2},
                                                        {"LIVE", 9, false, 0},
                                                        {"PEAK", 9, false, 0},
                                                        {"STEADY", 9, false, 3},
                                                        {"GROWTH", 7, false, 1},
                                                        {"STEP", 6, false, 1},
                                                        {"PHASE", 9, true, 4},
                                                        {"LIVE, 60 s", 10, true, 5}}};

using Widths = std::array<int, kColumnCount>;  // 0 = left out

// Two spaces beside text, one between numbers.
int gap_after(std::size_t i) { return kColumns[i].left || (i + 1 < kColumnCount && kColumns[i + 1].left) ? 2 : 1; }

// The columns that fit, with their widths. Room to spare goes to the curve and to the command.
Widths fitting(int screen) {
  Widths widths{};
  for (std::size_t i = 0; i < kColumnCount; ++i) widths[i] = kColumns[i].width;
  const auto spare = [&] {
    int left = screen - 1;  // the last gap is the margin
    for (std::size_t i = 0; i < kColumnCount; ++i)
      if (widths[i] > 0) left -= widths[i] + gap_after(i);
    return left;
  };
  for (int drop = 6; drop > 0 && spare() < 0; --drop)
    for (std::size_t i = 0; i < kColumnCount; ++i)
      if (kColumns[i].drop == drop) widths[i] = 0;
  const auto widen = [&](std::size_t column, int most) {
    if (widths[column] > 0) widths[column] += std::clamp(spare(), 0, most);
  };
  widen(kCommand, 8);
  widen(kPlot, 10);
  widen(kCommand, 18);
  return widths;
}

// A leak of a few kilobytes per step is no zero.
std::string growth_text(const std::optional<double>& growth) {
  if (!growth) return "–";
  if (*growth < 1) return "0";
  return *growth < 0.05 * kMiB ? "<0.1" : "+" + mib(static_cast<Bytes>(*growth));
}

void draw_process(Canvas& canvas, int y, const Process& process, const Widths& widths, std::uint64_t now_us, bool ascii) {
  const Style base = process.recorded ? kText : kSoft;
  const std::string cells[] = {fmt::format("{}", process.pid),
                               printable(process.command, static_cast<std::size_t>(widths[kCommand])),
                               process.recorded ? process.framework : "not recorded",
                               process.gpu < 0 ? "host" : fmt::format("{}", process.gpu),
                               mib(process.device),
                               process.pool > 0 ? mib(process.pool) : "–",
                               process.recorded ? mib(process.live) : "–",
                               process.recorded ? mib(process.peak) : "–",
                               mib(process.steady_peak),
                               growth_text(process.growth),
                               process.step > 0 ? support::format_count(static_cast<std::uint64_t>(process.step)) : "–",
                               process.phase.empty() ? "–" : printable(process.phase, kColumns[kPhase].width),
                               ""};
  int x = 1;
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    if (widths[i] == 0) continue;
    const Style style = i == kPid || i == kDevice
                            ? Style{.colour = process.recorded ? 0xffffff : 0x8791a0, .bold = process.recorded}
                        : i == kGrowth && process.grows ? kSignal
                        : i == kFramework               ? kSoft
                                                        : base;
    if (i == kPlot)
      plot(canvas, x, y, widths[i], 1, curve(process, now_us, 2 * widths[i], process.peak), {.colour = kLiveColour}, ascii);
    else if (kColumns[i].left)
      canvas.put(x, y, cells[i], style);
    else
      canvas.put_right(x + widths[i], y, cells[i], style);
    x += widths[i] + gap_after(i);
  }
}

void draw_heads(Canvas& canvas, int y, const Widths& widths, const std::string& sort) {
  int x = 1;
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    if (widths[i] == 0) continue;
    const Style style = lower(kColumns[i].head) == sort || (sort == "growth" && i == kGrowth) ? kStrong : kSoft;
    if (kColumns[i].left)
      canvas.put(x, y, kColumns[i].head, style);
    else
      canvas.put_right(x + widths[i], y, kColumns[i].head, style);
    x += widths[i] + gap_after(i);
  }
}

}  // namespace

DrawnTable draw_table(Canvas& canvas, int y, int most_rows, const ProcessTable& table) {
  DrawnTable drawn;
  const Widths widths = fitting(canvas.width());
  draw_heads(canvas, y++, widths, table.sort);
  const std::size_t rows = std::min(table.processes.size(), static_cast<std::size_t>(std::max(1, most_rows)));
  for (const Process& process : table.processes.first(rows)) {
    if (process.pid == table.selected) {
      canvas.background(y, kSelectedColour);
      drawn.selected = &process;
    }
    draw_process(canvas, y++, process, widths, table.now_us, table.ascii);
  }
  drawn.end = y;
  return drawn;
}

}  // namespace vramscope::cli::top
