// The terminal while `top` uses it: alternate screen, no echo, no cursor; always restored.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/top/canvas.h"
#include "support/result.h"

namespace vramscope::cli::top {

class Screen {
 public:
  static Result<bool> enter();  // takes the terminal
  static void leave();          // restores it; safe in a signal handler, and if it was never taken
  static std::pair<int, int> size();
  static Depth depth();
  static bool interrupted();  // by Ctrl-C or a termination request
  static void write(std::string_view text);
  // Waits for keys (keys.h); none if `milliseconds` have passed.
  static std::vector<std::string> keys(int milliseconds);
};

}  // namespace vramscope::cli::top
