// Whether the Python side watched the recorded frameworks (src/capture/python). Without it, there are no steps, layers, lines
// of graph ops or names of variables, and categories are guessed from the allocations alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace vramscope::analyze {

// "TensorFlow", "TensorFlow and PyTorch"; empty if all were watched, or if that is unknown. `setting` returns "" for a missing
// setting.
std::string unwatched_frameworks(const std::function<std::string(std::string_view)>& setting);

// "recorded without the Python hooks for TensorFlow: ...", without a full stop; empty for no framework.
std::string without_python_side(const std::string& frameworks);

}  // namespace vramscope::analyze
