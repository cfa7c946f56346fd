// Walks the calling thread's own Python frames without the interpreter lock.
//
// Only the thread itself changes its frame chain, so it is stable while the thread is in a hook. The chain keeps its code
// objects alive. The layout is checked against the live chain before it is trusted, each page is probed once, and each frame
// must lead to an object whose type is the interpreter's own code type; so a layout that does not fit ends the walk instead of
// the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/stacks/hash.h"
#include "capture/stacks/python_layout.h"
#include "capture/stacks/readable.h"

namespace vramscope::stacks {

struct Python {
  PythonLayout layout;
  std::uint64_t code_type = 0;        // &PyCode_Type
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState: this thread's state, lock held or not
  std::uint64_t text_begin = 0;       // the interpreter's own machine code
  std::uint64_t text_end = 0;
};

struct PythonFrame {
  std::uint64_t code = 0;
  std::uint64_t instr = 0;  // pointer or offset, as the layout says
  std::uint64_t frame = 0;
  std::uint64_t identity = 0;  // distinguishes a new code object from a dead one at the same address
};

// The interpreter of this process once its layout is verified, else NULL. The first calls search for it.
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

// Hashes the number of bytes and the first and last eight, where differences usually are. Reads whole aligned words of the
// object's own memory, so it may see bytes behind the end: then equal contents may look different, never the reverse.
inline std::uint64_t bytes_identity(std::uint64_t data, std::uint64_t bytes) {
  const std::uint64_t last = data + ((bytes - 1) & ~std::uint64_t{7});
  if (bytes - 1 >= (1u << 24) || !readable(data, 8) || !readable(last, 8)) return bytes;
  return chain(peek<std::uint64_t>(data) ^ (bytes << 56), peek<std::uint64_t>(last));
}

struct TextIdentity {
  std::uint64_t hash = 0;
  char first = '\0';
};

inline TextIdentity text_identity(const PythonLayout& layout, std::uint64_t text) {
  if (!readable(text, layout.text_wide_data)) return {};
  const std::uint32_t state = peek<std::uint32_t>(text + layout.text_state) >> layout.text_kind_shift;
  const std::uint64_t data = text + ((state & 16) != 0 ? layout.text_ascii_data : layout.text_wide_data);
  const std::uint64_t bytes = peek<std::uint64_t>(text + layout.text_length) * (state & 7);
  return {bytes_identity(data, bytes), readable(data, 1) ? peek<char>(data) : '\0'};
}

// Dead code objects leave their address, and often those of all their parts, to the next ones, so pointers alone do not
// distinguish them. Python 3.12 numbers them. For earlier versions, the file name is compared (frames share it, so it is
// available), and the other parts too if the code was created at run time: its file is "<...>", as in exec.
class CodeIdentity {
 public:
  explicit CodeIdentity(const PythonLayout& layout) : layout_(layout) {}

  std::uint64_t of(std::uint64_t code) {
    if (layout_.code_version != 0) {
      const std::uint32_t version = peek<std::uint32_t>(code + layout_.code_version);
      if (version != 0) return version;
    }
    const std::uint64_t file = peek<std::uint64_t>(code + layout_.code_file);
    const std::uint64_t name = peek<std::uint64_t>(code + layout_.code_name);
    const std::uint64_t lines = peek<std::uint64_t>(code + layout_.code_lines);
    if (file != last_file_) {
      last_file_ = file;
      last_ = text_identity(layout_, file);
    }
    std::uint64_t identity =
        last_.hash + name + 3 * lines + (std::uint64_t{peek<std::uint32_t>(code + layout_.code_first_line)} << 40);
    if (__builtin_expect(last_.first == '<' && readable(lines, layout_.bytes_data), 0)) {
      identity += 3 * text_identity(layout_, name).hash +
                  5 * bytes_identity(lines + layout_.bytes_data, peek<std::uint64_t>(lines + layout_.bytes_size));
    }
    return identity;
  }

 private:
  const PythonLayout& layout_;
  std::uint64_t last_file_ = 0;
  TextIdentity last_;
};

enum class WalkEnd : std::uint8_t { whole, limit, broken };

// Calls visit(PythonFrame) for each frame from `frame` (first_frame) outward, until it returns false.
template <typename Visit>
inline WalkEnd walk_python(const Python& py, std::uint64_t frame, Visit&& visit) {
  const PythonLayout& layout = py.layout;
  constexpr unsigned kMaxHops = 20000;  // a chain that loops
  constexpr std::uint8_t kFirstForeignOwner = 3;
  constexpr std::size_t kFrameBytes = 128;
  CodeIdentity identities(layout);
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
    out.identity = identities.of(out.code);
    if (!visit(out)) return WalkEnd::limit;
    frame = previous;
  }
  return WalkEnd::whole;
}

template <typename Visit>
inline WalkEnd walk_python(const Python& py, Visit&& visit) {
  return walk_python(py, first_frame(py), visit);
}

// Byte offset of the frame's current instruction in its code; negative = has not started.
std::int64_t instruction_offset(const Python& py, const PythonFrame& frame);

// Turns Python stacks off for good and reports why, once.
void give_up_python(const char* why);
// True until they were turned off.
bool python_usable();

// For tests: walk with a layout supplied by the caller. Returns whether the live chain fits it.
bool fits_live_chain(const Python& py, PythonLayout& layout);
void replace_python_for_test(const Python& py);

}  // namespace vramscope::stacks
