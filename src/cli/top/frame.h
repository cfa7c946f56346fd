// One frame of `vramscope top`: draws the state of the machine.
#pragma once

#include <string>

#include "cli/top/canvas.h"
#include "cli/top/model.h"

namespace vramscope::cli::top {

struct View {
  std::string sort = "device";
  std::string filter;
  bool typing = false;  // the filter is being edited
  bool by_gpu = false;
  bool paused = false;
  bool help = false;
  bool ascii = false;
  bool once = false;           // a snapshot without keys
  std::uint32_t selected = 0;  // pid, 0 = not selected yet
  double every_s = 0.5;
  // The output of another verb for the selected process, shown instead of everything else.
  std::string verb;  // "peak", "leaks", "summary"; "" = nothing
  std::vector<std::string> verb_output;
  std::size_t first_line = 0;
  std::string notice;  // on the last line, instead of the keys
  std::string host;
  std::string clock;  // "08:32:18"
};

// By device memory (or "live", "peak", "pid"), largest first.
void sort_processes(std::vector<Process>& processes, const std::string& by);

// Rows that match the filter, in the order of the view.
std::vector<Process> shown_processes(const State& state, const View& view);
// The process whose details are drawn: the selected one, else the first recorded one. 0 = there is none.
std::uint32_t selected_process(const std::vector<Process>& shown, const View& view);
Canvas draw(const State& state, const View& view, int width, int height);

}  // namespace vramscope::cli::top
