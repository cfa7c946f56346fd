// One frame of `vramscope top`: the state of the machine as a picture.
#pragma once

#include <string>

#include "cli/top/canvas.h"
#include "cli/top/model.h"

namespace vramscope::cli::top {

struct View {
  std::string sort = "device";
  std::string filter;
  bool typing = false;  // the filter is being written
  bool by_gpu = false;
  bool paused = false;
  bool help = false;
  bool ascii = false;
  bool once = false;           // a picture that nobody can press a key on
  std::uint32_t selected = 0;  // pid, 0 = not chosen yet
  double every_s = 0.5;
  // What another verb says about the selected process, in the place of everything else.
  std::string asked;  // "peak", "leaks", "summary"; "" = nothing
  std::vector<std::string> said;
  std::size_t first_line = 0;
  std::string notice;  // on the last line, instead of the keys
  std::string host;
  std::string clock;  // "08:32:18"
};

// First by what they take of the device (or "live", "peak", "pid"), largest first.
void sort_processes(std::vector<Process>& processes, const std::string& by);

// Rows that the filter lets through, in the order of the view.
std::vector<Process> shown_processes(const State& state, const View& view);
// The one whose inside is drawn: the chosen one, else the first that is recorded. 0 = there is none.
std::uint32_t selected_process(const std::vector<Process>& shown, const View& view);
Canvas draw(const State& state, const View& view, int width, int height);

}  // namespace vramscope::cli::top
