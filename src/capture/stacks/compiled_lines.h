// Generated code (torch.compile): which part of the network, and which place in the program, each of its lines serves. Reported
// by the Python side when such code is created, looked up when a new stack is defined.
#pragma once

#include <cstdint>

#include "capture/stacks/python_walk.h"

namespace vramscope::stacks {

// A place in the program as its author sees it, and the place that called it.
struct Place {
  std::uint32_t file = 0;      // handle (layer_text)
  std::uint32_t function = 0;  // handle
  std::uint32_t line = 0;
  std::uint32_t outer = 0;  // 0 = none
};
// Number of a new place, 0 if there is no room.
std::uint32_t add_place(const char* file, const char* function, std::uint32_t line, std::uint32_t outer);
// {} for an invalid number.
Place place_at(std::uint32_t number);

struct CompiledLine {
  std::uint32_t part = 0;  // handle of "block.0/Linear", or of ".0/Linear": a part of the layer whose call is on the stack
  std::uint32_t place = 0;
};
void name_line(std::uint64_t code, std::uint32_t line, const char* part, std::uint32_t place);
// Another code object may get its address.
void forget_code(std::uint64_t code);

// Nothing for code that was not generated.
CompiledLine compiled_line(const Python& py, const PythonFrame& frame);

}  // namespace vramscope::stacks
