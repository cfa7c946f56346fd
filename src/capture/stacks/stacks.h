// The calling thread's stack as an id that fits into an event, and what the stack reveals about the event.
//
// Python frames are read directly from the interpreter's own structures, without its lock and without touching a reference
// count: a thread may read its own frames at any time. Native frames come from frame pointers, or from the C++ unwinder on
// request. A stack is defined in the spool on first use; afterwards it costs one walk, one hash and one table lookup. Nothing
// here allocates, locks, waits or crashes: memory is touched only if it is known to be readable, and a frame layout that does
// not fit turns Python stacks off with one line on stderr.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramscope::stacks {

enum class Mode : std::uint8_t { none, python, native, both };

// What the frames reveal besides their place in the program. Zero = nothing. Outside the capture code, `checkpointed` (a
// forward pass that keeps no graph because it will run again) and `serving` (plumbing that works for a layer, as in FSDP) are
// ordinary forward passes.
enum class Phase : std::uint8_t {
  none = 0,
  input,
  forward,
  backward,
  optimizer,
  save,
  compile,
  checkpointed,
  serving,
  evaluate,
  kCount
};
const char* phase_name(Phase phase);

struct Snapshot {
  std::uint64_t id = 0;     // for AllocEvent::stack; 0 = none
  std::uint32_t layer = 0;  // handle of the innermost named network layer whose call is on the stack (layer_text)
  std::uint32_t part = 0;   // handle: compiled code serves this part of the layer (CompiledLine::part)
  std::uint32_t op = 0;     // string id: "layer/type", "layer/plumbing" or the plumbing alone (Role::op)
  Phase phase = Phase::none;
  bool has_frames = false;  // false: a thread without Python frames, labels must come from elsewhere
};

// Id of the current stack. 0 = none: turned off, not a Python thread, nothing recorded. Call with the recorder active.
std::uint64_t capture();
// The same, with labels. Labels are found even if stacks are off (then id is 0).
Snapshot snapshot();

// As requested by the options (record/options.h).
Mode mode();

// The meaning of a code object on the stack. Reported by the Python side, which keeps the code object alive.
enum class Role : std::uint8_t {
  none = 0,
  layer_call,  // a method whose first argument is a network layer (name_object)
  phase,       // value: Phase
  recompute,   // layers below it run again inside backward
  op,          // text: name of the plumbing at work
};
struct Watch {
  std::uint64_t code = 0;  // address of the code object
  Role role = Role::none;
  Phase phase = Phase::none;
  // layer_call: where the frame stores the first argument: which of its variables, and whether in a cell because an inner
  // function uses it (then, before 3.11, behind the plain variables).
  std::uint16_t self_slot = 0;
  bool self_in_cell = false;
  const char* text = nullptr;
};
// False if the table is full or Python frames cannot be read.
bool watch(const Watch& entry);
// Name of a network layer, "block.0.attention/Linear", by the address of its Python object. forget_labels() applies it to
// stacks that were already seen.
void name_object(std::uint64_t object, const char* name);
// A handle for a name that belongs to no object. 0 if there is no room.
std::uint32_t keep_layer(const char* name);
// The name behind Snapshot::layer. Stays valid.
const char* layer_text(std::uint32_t layer);
void forget_labels();

// Compares the walker with a stack described by Python itself, innermost frame first, taken in the calling thread by the caller
// of this function. False (and Python stacks are turned off, with one line on stderr) if they differ.
bool verify(const std::uint64_t* codes, const std::uint32_t* lines, std::size_t count);

}  // namespace vramscope::stacks
