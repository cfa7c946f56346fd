#include "cli/top/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "cli/show/terminal.h"
#include "cli/top/drawing.h"
#include "cli/top/process_detail.h"
#include "cli/top/process_table.h"
#include "cli/top/split_bar.h"
#include "support/units.h"

namespace vramscope::cli::top {

namespace {

constexpr std::int32_t kFreeColour = 0x3f5468, kOutsideColour = 0x7a8594, kOtherColour = 0x4b5563, kEmptyColour = 0x1d232b;
constexpr int kBarX = 55;  // where the bars of GPUs and their legend start

// "NVIDIA GeForce RTX 4090" is "RTX 4090": what distinguishes cards.
std::string_view short_name(std::string_view name) {
  for (const std::string_view maker : {"NVIDIA ", "GeForce ", "Tesla "})
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  return name;
}

void draw_gpu(Canvas& canvas, int y, const Gpu& gpu, bool ascii) {
  int x = canvas.put(1, y, fmt::format("GPU {}", gpu.index), kStrong);
  canvas.put(x + 2, y, printable(short_name(gpu.name), 14), kSoft);
  canvas.put_right(32, y, mib(gpu.used), kText);
  canvas.put(33, y, fmt::format("of {}", support::format_count(gpu.total / kMiB)), kSoft);
  const double share = gpu.total == 0 ? 0 : static_cast<double>(gpu.used) / static_cast<double>(gpu.total);
  canvas.put_right(53, y, support::format_percent(share), kText);
  const int width = canvas.width() - kBarX - 2;
  if (width < 8 || gpu.total == 0) return;
  const Bytes pool = std::min(gpu.pool, gpu.used);
  const Bytes live = std::min(gpu.live, pool);
  const Bytes recorded = std::max(pool, std::min(gpu.recorded, gpu.used));
  split_bar(canvas, kBarX, y, width,
            {{live, kLiveColour, "#"},
             {pool - live, kFreeColour, "-"},
             {recorded - pool, kOutsideColour, "+"},
             {gpu.used - recorded, kOtherColour, "o"}},
            gpu.total, kEmptyColour, ascii);
}

void draw_legend(Canvas& canvas, int y, bool ascii) {
  constexpr int kLegendWidth = 67;
  int x = canvas.width() >= kBarX + kLegendWidth ? kBarX : 1;
  for (const auto& [name, colour] : {std::pair{"live", kLiveColour},
                                     {"free in the pool", kFreeColour},
                                     {"outside the pool", kOutsideColour},
                                     {"not recorded", kOtherColour}}) {
    x = canvas.put(x, y, ascii ? "#" : "■", {.colour = colour});
    x = canvas.put(x + 1, y, name, kSoft) + 3;
  }
}

int draw_gpus(Canvas& canvas, int y, const State& state, bool ascii) {
  if (state.gpus.empty()) {
    canvas.put(1, y++,
               state.problem.empty() ? "No GPU found." : fmt::format("No device figures: {}.", printable(state.problem, 100)),
               kSoft);
    return y;
  }
  const int end = canvas.height() - 6;  // the lines below are for processes
  for (const Gpu& gpu : state.gpus)
    if (y < end) draw_gpu(canvas, y++, gpu, ascii);
  if (y < end) draw_legend(canvas, y++, ascii);
  return y;
}

void draw_title(Canvas& canvas, const State& state, const View& view) {
  const auto recorded =
      std::count_if(state.processes.begin(), state.processes.end(), [](const Process& p) { return p.recorded; });
  int x = canvas.put(1, 0, "vramscope top", kStrong);
  const bool is_narrow = canvas.width() < 100;  // the unit, at the right, is needed more than the name of the host
  x = canvas.put(x + 3, 0,
                 fmt::format("{}{}   {}   {}, {} recorded", is_narrow ? "" : printable(view.host, 20) + "   ", view.clock,
                             support::format_plural(state.gpus.size(), "GPU", "GPUs"),
                             support::format_plural(state.processes.size(), "process", "processes"), recorded),
                 kText);
  const std::string state_text = view.paused ? "paused    " : "";
  const std::string sorted = fmt::format("sorted by {}    ", view.by_gpu ? "GPU" : view.sort);
  const std::string every = view.once ? "" : fmt::format("every {:.1f} s    ", view.every_s);
  // The unit is told at any width.
  for (const std::string& about : {fmt::format("{}{}{}all in MiB", state_text, every, sorted),
                                   fmt::format("{}{}MiB", state_text, sorted), fmt::format("{}MiB", state_text)})
    if (x + columns_of(about) + 2 < canvas.width()) {
      canvas.put_right(canvas.width() - 2, 0, about, kSoft);
      return;
    }
}

// As many in a line as fit: none is cut where 80 columns are left.
int draw_help(Canvas& canvas, int y) {
  int x = 1;
  for (const std::string_view part :
       {"Bars: live, free in the pool, outside the pool, not recorded.", "LIVE: handed out by the framework.",
        "POOL: held by its allocator.", "DEVICE: reported by the card.", "GROWTH: growth per step.",
        "STEADY: peak of the steps after warm-up.", "–: unknown.", "Keys: s sort, / filter, g by GPU, p peak, l leaks,",
        "w open in browser, space pause.", "No key affects a process."}) {
    if (x > 1 && x + columns_of(part) + 1 > canvas.width()) {
      x = 1;
      ++y;
    }
    canvas.put(x, y, part, kText);
    x += columns_of(part) + 1;
  }
  return y + 2;
}

std::string sentence_of(const Process& process) {
  if (!process.recorded) return "Start it with 'vramscope run' to see inside its device memory.";
  if (process.ooms > 0) return fmt::format("ran out of memory {}.", support::format_plural(process.ooms, "time", "times"));
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

void draw_sentences(Canvas& canvas, int y, const std::vector<Process>& processes) {
  for (const Process& process : processes) {
    const std::string sentence = sentence_of(process);
    if (sentence.empty() || y >= canvas.height() - 1) continue;
    canvas.put(1, y, fmt::format("{:<6}", process.pid), kStrong);
    canvas.put(8, y++, beginning(printable(sentence), std::max(20, canvas.width() - 10)),
               process.grows || process.ooms > 0 ? kSignal : kText);
  }
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
  using Keys = std::vector<std::pair<const char*, const char*>>;
  const char* arrows = view.ascii ? "up/down" : "↑↓";
  // On a narrow screen, those before the last two go first: help tells the rest.
  Keys keys = view.verb.empty() ? Keys{{arrows, "select"},
                                       {view.ascii ? "enter" : "↵", "open"},
                                       {"s", "sort"},
                                       {"/", "filter"},
                                       {"g", "by GPU"},
                                       {"p", "peak"},
                                       {"l", "leaks"},
                                       {"w", "open in browser"},
                                       {"space", view.paused ? "resume" : "pause"},
                                       {"?", "help"},
                                       {"q", "quit"}}
                                : Keys{{arrows, "scroll"}, {"esc", "back"}, {"w", "open in browser"}, {"q", "quit"}};
  const auto width = [&] {
    int sum = 1;
    for (const auto& [key, what] : keys) sum += columns_of(key) + 1 + columns_of(what) + 3;
    return sum - 3;
  };
  while (width() > canvas.width() && keys.size() > 3) keys.erase(keys.end() - 3);
  int x = 1;
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

// The output of another verb, from the line on that was scrolled to.
Canvas draw_verb_output(const std::vector<Process>& processes, const View& view, int width, int height) {
  Canvas canvas(width, height);
  const auto chosen = std::ranges::find(processes, selected_process(processes, view), &Process::pid);
  canvas.put(
      1, 0,
      chosen == processes.end() ? view.verb : fmt::format("{}  {}   {}", chosen->pid, printable(chosen->command, 40), view.verb),
      kStrong);
  if (view.verb_output.empty()) canvas.put(1, 2, "Reading the trace...", kSoft);
  int y = 2;
  for (std::size_t i = view.first_line; i < view.verb_output.size() && y < height - 1; ++i)
    canvas.put(1, y++, printable(view.verb_output[i]), i == 0 ? kStrong : kText);
  draw_keys(canvas, view);
  return canvas;
}

// The table, and what is known about the processes in it.
void draw_processes(Canvas& canvas, int y, const std::vector<Process>& processes, const State& state, const View& view) {
  const int height = canvas.height();
  const ProcessTable table{.processes = processes,
                           .selected = selected_process(processes, view),
                           .now_us = state.time_us,
                           .sort = view.sort,
                           .ascii = view.ascii};
  const DrawnTable drawn = draw_table(canvas, y, height - y - 5, table);
  y = drawn.end;
  if (processes.empty())
    canvas.put(1, y++,
               state.processes.empty() ? "No recorded process. Start a program with 'vramscope run' to see inside it."
                                       : "No process matches the filter.",
               kSoft);
  ++y;
  const int sentences = static_cast<int>(
      std::count_if(processes.begin(), processes.end(), [](const Process& p) { return !sentence_of(p).empty(); }));
  if (drawn.selected != nullptr)
    y = draw_detail(canvas, y, height - y - 2 - std::min(4, sentences), *drawn.selected, state.time_us, view.ascii) + 1;
  draw_sentences(canvas, y, processes);
}

}  // namespace

Canvas draw(const State& state, const View& view, int width, int height) {
  const auto processes = shown_processes(state, view);
  if (!view.verb.empty()) return draw_verb_output(processes, view, width, height);
  Canvas canvas(width, height);
  draw_title(canvas, state, view);
  int y = 2;
  if (view.help) y = draw_help(canvas, y);
  y = draw_gpus(canvas, y, state, view.ascii) + 1;
  draw_processes(canvas, y, processes, state, view);
  if (!view.once) draw_keys(canvas, view);
  return canvas;
}

}  // namespace vramscope::cli::top
