// Walks the calling thread's own Python frames without the interpreter lock.
//
// A thread's frame chain changes only by that thread, so it is steady while the thread sits in a hook. Code objects on the chain
// are kept alive by it. The layout is checked against the live chain before it is trusted, each page is asked for once, and each
// frame must lead to an object whose type is the interpreter's own code type; so a layout that does not fit ends the walk instead
// of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/stacks/hash.h"
#include "capture/stacks/python_layout.h"
#include "capture/stacks/readable.h"

namespace vramscope::stacks {

struct Python {
  PythonLayout layout;
  std::uint64_t code_type = 0;               // &PyCode_Type
  void* (*thread_state)() = nullptr;         // PyGILState_GetThisThreadState: this thread's state, lock held or not
  std::uint64_t text_begin = 0;              // the interpreter's own machine code
  std::uint64_t text_end = 0;
};

struct PythonFrame {
  std::uint64_t code = 0;
  std::uint64_t instr = 0;      // pointer or offset, as the layout says
  std::uint64_t frame = 0;
  // Of the code object's parts: tells a new code object from an old one at the same address.
  std::uint64_t identity = 0;
};

// The interpreter of this process once its layout is verified, else NULL. The first calls look for it.
const Python* python();

// NULL-safe: 0 for a thread that never ran Python.
inline std::uint64_t first_frame(const Python& py) {
  const auto thread = reinterpret_cast<std::uint64_t>(py.thread_state());
  if (thread == 0) return 0;
  std::uint64_t at = thread + py.layout.thread_frame;
  if (!readable(at, 8)) return 0;
  std::uint64_t frame = peek<std::uint64_t>(at);
  if (py.layout.cframe_current < 0 || frame == 0) return frame;
  at = frame + static_cast<std::uint64_t>(py.layout.cframe_current);
  return readable(at, 8) ? peek<std::uint64_t>(at) : 0;
}

enum class WalkEnd : std::uint8_t { whole, limit, broken };

// Calls visit(PythonFrame) for each frame, innermost first, until it returns false.
template <typename Visit>
inline WalkEnd walk_python(const Python& py, Visit&& visit) {
  const PythonLayout& layout = py.layout;
  constexpr unsigned kMaxHops = 20000;   // a chain that bites its own tail
  constexpr std::uint8_t kFirstForeignOwner = 3;
  constexpr std::size_t kFrameBytes = 128;
  std::uint64_t frame = first_frame(py);
  for (unsigned hops = 0; frame != 0; ++hops) {
    if (hops == kMaxHops || (frame & 7) != 0 || !readable(frame, kFrameBytes)) return WalkEnd::broken;
    const std::uint64_t previous = peek<std::uint64_t>(frame + layout.frame_previous);
    if (layout.frame_owner >= 0 &&
        peek<std::uint8_t>(frame + static_cast<std::uint64_t>(layout.frame_owner)) >= kFirstForeignOwner) {
      frame = previous;
      continue;
    }
    PythonFrame out;
    out.frame = frame;
    out.code = peek<std::uint64_t>(frame + layout.frame_code) & layout.pointer_mask;
    if (!readable(out.code, layout.code_bytes) || peek<std::uint64_t>(out.code + layout.object_type) != py.code_type) {
      return WalkEnd::broken;
    }
    out.instr = layout.instr == InstrKind::pointer ? peek<std::uint64_t>(frame + layout.frame_instr)
                                                   : peek<std::uint32_t>(frame + layout.frame_instr);
    out.identity = peek<std::uint64_t>(out.code + layout.code_name) + 3 * peek<std::uint64_t>(out.code + layout.code_lines) +
                   (std::uint64_t{peek<std::uint32_t>(out.code + layout.code_first_line)} << 40);
    if (!visit(out)) return WalkEnd::limit;
    frame = previous;
  }
  return WalkEnd::whole;
}

// Byte offset of the frame's current instruction in its code; negative = has not begun.
std::int64_t instruction_offset(const Python& py, const PythonFrame& frame);

// Python stacks stop for good; says why, once.
void give_up_python(const char* why);
// True until something gave up.
bool python_usable();

// For tests: walk with a layout of the caller's making. Returns whether the live chain fits it.
bool fits_live_chain(const Python& py, PythonLayout& layout);
void replace_python_for_test(const Python& py);

}  // namespace vramscope::stacks
