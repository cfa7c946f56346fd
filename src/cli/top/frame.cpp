#include "cli/top/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include "cli/terminal.h"
#include "support/units.h"

namespace vramscope::cli::top {

namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr Style kText{.colour = 0xd5dae2};
constexpr Style kStrong{.colour = 0xffffff, .bold = true};
constexpr Style kSoft{.colour = 0x8791a0};
constexpr Style kSignal{.colour = 0xff8a4c, .bold = true};
constexpr std::int32_t kLive = 0x6dbbf0, kFree = 0x3f5468, kOutside = 0x7a8594, kOther = 0x4b5563, kEmpty = 0x1d232b,
                       kSelected = 0x1b3044;

std::string mib(Bytes bytes) { return support::format_in(bytes, kMiB); }
std::string mib(const std::optional<Bytes>& bytes) { return bytes ? mib(*bytes) : "–"; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

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
                                                        {"A STEP", 7, false, 1},
                                                        {"STEP", 6, false, 1},
                                                        {"PHASE", 9, true, 4},
                                                        {"LIVE, 60 s", 10, true, 5}}};

// The columns that fit, with their widths; 0 = left out. Room to spare goes to the curve and to the command.
using Widths = std::array<int, kColumnCount>;

// Two spaces beside text, one between numbers.
int gap_after(std::size_t i) { return kColumns[i].left || (i + 1 < kColumnCount && kColumns[i + 1].left) ? 2 : 1; }

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

// The highest value of each of `columns` equal stretches of the last `span_us`, as a share of `top`.
std::vector<double> curve(const Process& process, std::uint64_t now_us, std::uint64_t span_us, int columns, Bytes top) {
  std::vector<double> out(static_cast<std::size_t>(std::max(0, columns)), 0);
  if (out.empty() || top == 0) return out;
  for (const auto& [time, live] : process.history) {
    if (now_us - time >= span_us) continue;
    const auto at = static_cast<std::size_t>((span_us - (now_us - time) - 1) * out.size() / span_us);
    const double value = static_cast<double>(live) / static_cast<double>(top);
    // A reading stands until the next one.
    for (std::size_t i = at; i < out.size(); ++i) out[i] = i == at ? std::max(out[i], value) : value;
  }
  return out;
}

// "NVIDIA GeForce RTX 4090" is "RTX 4090": what tells cards apart.
std::string_view short_name(std::string_view name) {
  for (const std::string_view maker : {"NVIDIA ", "GeForce ", "Tesla "})
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  return name;
}

void draw_gpu(Canvas& canvas, int y, const Gpu& gpu, int bar_x, bool ascii) {
  int x = canvas.put(1, y, fmt::format("GPU {}", gpu.index), kStrong);
  canvas.put(x + 2, y, printable(short_name(gpu.name), 14), kSoft);
  canvas.put_right(32, y, mib(gpu.used), kText);
  canvas.put(33, y, fmt::format("of {}", support::format_count(gpu.total / kMiB)), kSoft);
  const double share = gpu.total == 0 ? 0 : static_cast<double>(gpu.used) / static_cast<double>(gpu.total);
  canvas.put_right(53, y, fmt::format("{:.1f} %", 100 * share), kText);
  const int width = canvas.width() - bar_x - 2;
  if (width < 8 || gpu.total == 0) return;
  const auto cells = [&](Bytes bytes) {
    return static_cast<int>(std::lround(static_cast<double>(bytes) / static_cast<double>(gpu.total) * width));
  };
  const Bytes pool = std::min(gpu.pool, gpu.used);
  const Bytes recorded = std::max(pool, std::min(gpu.recorded, gpu.used));
  canvas.fill(bar_x, y, width, ascii ? "." : "▁", {.colour = kEmpty});
  const auto part = [&](Bytes from, Bytes to, std::int32_t colour, const char* plain) {
    const int first = cells(from);
    const int count = std::max(cells(to) - first, to > from ? 1 : 0);
    canvas.fill(bar_x + first, y, std::min(count, width - first), ascii ? plain : "■", {.colour = colour});
  };
  part(recorded, gpu.used, kOther, "o");
  part(pool, recorded, kOutside, "+");
  part(std::min(gpu.live, pool), pool, kFree, "-");
  part(0, std::min(gpu.live, pool), kLive, "#");
}

void draw_process(Canvas& canvas, int y, const Process& process, const Widths& widths, std::uint64_t now_us, bool ascii) {
  const Style base = process.recorded ? kText : kSoft;
  const std::string cells[] = {
      fmt::format("{}", process.pid),
      printable(process.command, static_cast<std::size_t>(widths[kCommand])),
      process.recorded ? process.framework : "not recorded",
      process.gpu < 0 ? "host" : fmt::format("{}", process.gpu),
      mib(process.device),
      process.pool > 0 ? mib(process.pool) : "–",
      process.recorded ? mib(process.live) : "–",
      process.recorded ? mib(process.peak) : "–",
      mib(process.steady_peak),
      process.growth ? (*process.growth >= 1 ? "+" + mib(static_cast<Bytes>(*process.growth)) : "0") : "–",
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
      plot(canvas, x, y, widths[i], 1, curve(process, now_us, 60'000'000, 2 * widths[i], process.peak), {.colour = kLive}, ascii);
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

// The selected process: its curve, what its peak is made of, its largest blocks.
int draw_detail(Canvas& canvas, int y, int height, const Process& process, const State& state, bool ascii) {
  const int plot_height = std::min(10, height - 3);
  if (plot_height < 3) return y;
  int x = canvas.put(1, y, fmt::format("{}  {}", process.pid, printable(process.command, 30)), kStrong);
  std::string now = process.recorded ? fmt::format("{} MiB live now", mib(process.live)) : "only the device figure is known";
  if (process.step > 0) now = fmt::format("step {}, {}{}", process.step, process.phase.empty() ? "" : process.phase + ", ", now);
  canvas.put(x + 3, y, now, kText);
  if (!process.recorded) return y + 1;
  const bool side = canvas.width() >= 110;
  const int right = side ? canvas.width() - 44 : canvas.width() - 2;
  canvas.put(2, y + 1, "MiB live", kSoft);
  const Bytes top = std::max<Bytes>(1, process.peak);
  canvas.put_right(10, y + 2, mib(process.peak), kSoft);
  if (process.steady_peak && *process.steady_peak < process.peak) {
    const int row = y + 1 + plot_height -
                    static_cast<int>(static_cast<double>(*process.steady_peak) / static_cast<double>(top) * plot_height);
    if (row > y + 2 && row < y + 1 + plot_height) canvas.put_right(10, row, mib(*process.steady_peak), kSoft);
  }
  canvas.put_right(10, y + 1 + plot_height, "0", kSoft);
  plot(canvas, 11, y + 2, right - 12, plot_height, curve(process, state.time_us, 60'000'000, 2 * (right - 12), top),
       {.colour = kLive}, ascii);
  canvas.put(11, y + 2 + plot_height, "-60 s", kSoft);
  canvas.put_right(right - 1, y + 2 + plot_height, "now", kSoft);
  if (side) {
    int line = y + 1;
    const int left = right + 2;
    canvas.put(left, line, process.steady_peak ? "at the steady peak" : "at the peak", kSoft);
    canvas.put_right(canvas.width() - 2, line++, "MiB", kSoft);
    Bytes most = 1;
    for (const Category& part : process.at_peak) most = std::max(most, part.bytes);
    for (const Category& part : process.at_peak) {
      if (line > y + 1 + plot_height) break;
      canvas.put(left, line, part.name, kText);
      canvas.put_right(left + 26, line, mib(part.bytes), kText);
      canvas.fill(left + 28, line++,
                  std::max(1, static_cast<int>(12 * static_cast<double>(part.bytes) / static_cast<double>(most))),
                  ascii ? "#" : "■", {.colour = category_colour(part.name)});
    }
    if (line + 1 <= y + 1 + plot_height && !process.largest.empty()) canvas.put(left, ++line, "largest", kSoft), ++line;
    for (const Category& part : process.largest) {
      if (line > y + 2 + plot_height) break;
      canvas.put(left, line, printable(part.name, 30), kText);
      canvas.put_right(canvas.width() - 2, line++, mib(part.bytes), kText);
    }
  }
  return y + 3 + plot_height;
}

std::string sentence_of(const Process& process) {
  if (!process.recorded) return "only the device figure is known. Start it with vramscope run to see inside.";
  if (process.ooms > 0) return fmt::format("was refused memory {}.", support::format_plural(process.ooms, "time", "times"));
  return process.sentence;
}

// A sentence is cut at its end, unlike a name.
std::string beginning(const std::string& sentence, int width) {
  const auto all = characters(sentence);
  if (static_cast<int>(all.size()) <= width) return sentence;
  std::string out;
  for (const std::string_view character : all | std::views::take(width - 1)) out += character;
  return out + "…";
}

void draw_keys(Canvas& canvas, const View& view) {
  const int y = canvas.height() - 1;
  canvas.background(y, 0x1a1f27);
  if (!view.notice.empty()) {
    canvas.put(1, y, view.notice, kStrong);
    return;
  }
  if (view.typing) {
    canvas.put(1, y, fmt::format("filter: {}", printable(view.filter)), kStrong);
    return;
  }
  int x = 1;
  using Keys = std::vector<std::pair<const char*, const char*>>;
  const char* arrows = view.ascii ? "up/down" : "↑↓";
  const Keys keys = view.asked.empty() ? Keys{{arrows, "select"},
                                              {view.ascii ? "enter" : "↵", "open"},
                                              {"s", "sort"},
                                              {"/", "filter"},
                                              {"g", "by GPU"},
                                              {"p", "peak"},
                                              {"l", "leaks"},
                                              {"w", "page for a browser"},
                                              {"space", view.paused ? "go on" : "pause"},
                                              {"?", "help"},
                                              {"q", "quit"}}
                                       : Keys{{arrows, "scroll"}, {"esc", "back"}, {"w", "page for a browser"}, {"q", "quit"}};
  for (const auto& [key, what] : keys) {
    x = canvas.put(x, y, key, kStrong);
    x = canvas.put(x + 1, y, what, kSoft) + 3;
  }
}

}  // namespace

void sort_processes(std::vector<Process>& processes, const std::string& by) {
  const auto key = [&](const Process& p) -> std::uint64_t {
    if (by == "live") return p.live;
    if (by == "peak") return p.peak;
    if (by == "growth") return static_cast<std::uint64_t>(std::max(0.0, p.growth.value_or(0)));
    return p.device.value_or(p.pool > 0 ? p.pool : p.live);
  };
  std::stable_sort(processes.begin(), processes.end(), [&](const Process& a, const Process& b) {
    if (by == "pid") return a.pid < b.pid;
    if (by == "gpu" && a.gpu != b.gpu) return a.gpu < b.gpu;
    return key(a) > key(b);
  });
}

std::vector<Process> shown_processes(const State& state, const View& view) {
  std::vector<Process> out;
  for (const Process& process : state.processes) {
    const std::string text = fmt::format("{} {} {} gpu{}", process.pid, process.command, process.framework, process.gpu);
    if (lower(text).find(lower(view.filter)) != std::string::npos) out.push_back(process);
  }
  sort_processes(out, view.by_gpu ? "gpu" : view.sort);
  return out;
}

std::uint32_t selected_process(const std::vector<Process>& shown, const View& view) {
  if (shown.empty()) return 0;
  const auto chosen = std::ranges::find(shown, view.selected, &Process::pid);
  if (chosen != shown.end()) return chosen->pid;
  const auto first = std::ranges::find(shown, true, &Process::recorded);  // there is more to show of it
  return first != shown.end() ? first->pid : shown.front().pid;
}

namespace {

// The words of another verb, from the line on that was scrolled to.
Canvas draw_said(const std::vector<Process>& processes, const View& view, int width, int height) {
  Canvas canvas(width, height);
  const auto chosen = std::ranges::find(processes, selected_process(processes, view), &Process::pid);
  canvas.put(1, 0,
             chosen == processes.end() ? view.asked
                                       : fmt::format("{}  {}   {}", chosen->pid, printable(chosen->command, 40), view.asked),
             kStrong);
  if (view.said.empty()) canvas.put(1, 2, "The trace is being read.", kSoft);
  int y = 2;
  for (std::size_t i = view.first_line; i < view.said.size() && y < height - 1; ++i)
    canvas.put(1, y++, printable(view.said[i]), i == 0 ? kStrong : kText);
  draw_keys(canvas, view);
  return canvas;
}

}  // namespace

Canvas draw(const State& state, const View& view, int width, int height) {
  Canvas canvas(width, height);
  const auto processes = shown_processes(state, view);
  if (!view.asked.empty()) return draw_said(processes, view, width, height);
  const auto recorded =
      std::count_if(state.processes.begin(), state.processes.end(), [](const Process& p) { return p.recorded; });
  int x = canvas.put(1, 0, "vramscope top", kStrong);
  x = canvas.put(x + 3, 0,
                 fmt::format("{}   {}   {}   {}, {} recorded", printable(view.host, 20), view.clock,
                             support::format_plural(state.gpus.size(), "GPU", "GPUs"),
                             support::format_plural(state.processes.size(), "process", "processes"), recorded),
                 kText);
  const std::string about =
      fmt::format("{}{}sorted by {}    all in MiB", view.paused ? "paused    " : "",
                  view.once ? "" : fmt::format("every {:.1f} s    ", view.every_s), view.by_gpu ? "GPU" : view.sort);
  if (x + columns_of(about) + 4 < width) canvas.put_right(width - 2, 0, about, kSoft);
  int y = 2;
  if (view.help) {
    for (const char* line : {"Bars: live, free in the pool, outside the pool, not recorded.",
                             "LIVE is what the framework handed out, POOL what its allocator holds, DEVICE what the card says.",
                             "A STEP is growth; STEADY the peak of the steps after warm-up. – is not known.",
                             "No key changes anything in a process."})
      canvas.put(1, y++, line, kText);
    ++y;
  }
  if (state.gpus.empty())
    canvas.put(1, y++,
               state.problem.empty() ? "No GPU here." : fmt::format("No device figures: {}.", printable(state.problem, 100)),
               kSoft);
  for (const Gpu& gpu : state.gpus)
    if (y < height - 6) draw_gpu(canvas, y++, gpu, 55, view.ascii);
  if (!state.gpus.empty() && y < height - 6) {
    int at = 55;
    for (const auto& [name, colour] :
         {std::pair{"live", kLive}, {"free in the pool", kFree}, {"outside the pool", kOutside}, {"not recorded", kOther}}) {
      at = canvas.put(at, y, view.ascii ? "#" : "■", {.colour = colour});
      at = canvas.put(at + 1, y, name, kSoft) + 3;
    }
    ++y;
  }
  ++y;
  const Widths widths = fitting(width);
  draw_heads(canvas, y++, widths, view.sort);
  const std::size_t rows =
      static_cast<std::size_t>(std::max(1, std::min<int>(static_cast<int>(processes.size()), height - y - 4)));
  const Process* chosen = nullptr;
  const std::uint32_t selected = selected_process(processes, view);
  for (std::size_t i = 0; i < std::min(rows, processes.size()); ++i) {
    if (processes[i].pid == selected) canvas.background(y, kSelected), chosen = &processes[i];
    draw_process(canvas, y++, processes[i], widths, state.time_us, view.ascii);
  }
  if (processes.empty())
    canvas.put(1, y++,
               state.processes.empty() ? "Nothing is recorded. Start a program with 'vramscope run' to see inside it."
                                       : "No process matches the filter.",
               kSoft);
  ++y;
  const int sentences = static_cast<int>(
      std::count_if(processes.begin(), processes.end(), [](const Process& p) { return !sentence_of(p).empty(); }));
  if (chosen != nullptr) y = draw_detail(canvas, y, height - y - 2 - std::min(4, sentences), *chosen, state, view.ascii) + 1;
  for (const Process& process : processes) {
    const std::string sentence = sentence_of(process);
    if (sentence.empty() || y >= height - 1) continue;
    canvas.put(1, y, fmt::format("{:<6}", process.pid), kStrong);
    canvas.put(8, y++, beginning(printable(sentence), std::max(20, width - 10)),
               process.grows || process.ooms > 0 ? kSignal : kText);
  }
  if (!view.once) draw_keys(canvas, view);
  return canvas;
}

}  // namespace vramscope::cli::top
