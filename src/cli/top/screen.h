// The terminal while `top` is on it: other screen, no echo, no cursor; given back whatever happens.
#pragma once

#include <string>
#include <utility>

#include "cli/top/canvas.h"
#include "support/result.h"

namespace vramscope::cli::top {

class Screen {
 public:
  static Result<bool> enter();  // takes the terminal
  static void leave();          // gives it back; safe in a signal handler, and when it was never taken
  static std::pair<int, int> size();
  static Depth depth();
  static bool interrupted();  // by Ctrl-C or a request to end
  static void write(std::string_view text);
  // Waits for a key: "up", "down", "enter", "escape", "backspace", a character, or "" when `milliseconds` have passed.
  static std::string key(int milliseconds);
};

}  // namespace vramscope::cli::top
