// What this program runs in a Python interpreter of the user.
#pragma once

#include <string>

namespace vramscope::cli {

// A script for `python -c`. With -c and with -m, Python looks for modules in the current folder first, which may be anybody's:
// that place goes before anything is imported from a file.
inline std::string python_script(const char* text) {
  return std::string("import sys\nsys.path[:] = [place for place in sys.path if place.startswith('/')]\n") + text;
}

}  // namespace vramscope::cli
