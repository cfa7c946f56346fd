#include "capture/stacks/python_layout.h"

#include "capture/stacks/readable.h"

namespace vramscope::stacks {
namespace {

constexpr PythonLayout frame_objects(std::uint16_t instr, std::uint16_t locals, InstrKind kind, LineTable lines) {
  PythonLayout layout;
  layout.thread_frame = 24;
  layout.frame_previous = 24;
  layout.frame_code = 32;
  layout.frame_instr = instr;
  layout.frame_locals = locals;
  layout.instr = kind;
  layout.code_file = 104;
  layout.code_name = 112;
  layout.code_first_line = 40;
  layout.code_lines = 120;
  layout.code_bytes = 128;
  layout.line_table = lines;
  layout.text_ascii_data = 48;
  layout.text_wide_data = 72;
  return layout;
}

constexpr PythonLayout python_311() {
  PythonLayout layout;
  layout.thread_frame = 56;
  layout.cframe_current = 8;
  layout.frame_previous = 48;
  layout.frame_code = 32;
  layout.frame_instr = 56;
  layout.frame_locals = 72;
  layout.code_file = 112;
  layout.code_name = 128;
  layout.code_first_line = 72;
  layout.code_lines = 136;
  layout.code_instructions = 184;
  layout.code_bytes = 184;
  layout.text_ascii_data = 48;
  layout.text_wide_data = 72;
  return layout;
}

constexpr PythonLayout python_312() {
  PythonLayout layout = python_311();
  layout.cframe_current = 0;
  layout.frame_previous = 8;
  layout.frame_code = 0;
  layout.frame_owner = 70;
  layout.code_first_line = 68;
  layout.code_version = 92;
  layout.code_instructions = 192;
  layout.text_ascii_data = 40;
  layout.text_wide_data = 56;
  return layout;
}

// _Py_DebugOffsets is an array of 64-bit words after an 8-byte cookie; the groups grew from version to version.
struct OffsetGroups {
  int thread, frame, code, object, bytes, text;  // index of the first word (the size of the structure) of each group
};
constexpr OffsetGroups kGroups313 = {19, 28, 34, 44, 64, 67};
constexpr OffsetGroups kGroups314 = {22, 31, 39, 50, 74, 77};

class DebugOffsets {
 public:
  explicit DebugOffsets(const void* runtime) : base_(reinterpret_cast<std::uint64_t>(runtime)) {}
  // Word `index` of the group at `group`, which must lie within the structure that it describes.
  std::uint16_t field(int group, int index) {
    const std::uint64_t size = word(group);
    const std::uint64_t value = word(group + index);
    if (size == 0 || size > 4096 || value >= size) fits_ = false;
    return static_cast<std::uint16_t>(value);
  }
  std::uint64_t word(int index) const { return peek<std::uint64_t>(base_ + 8 * static_cast<std::uint64_t>(index)); }
  bool fits() const { return fits_; }

 private:
  std::uint64_t base_;
  bool fits_ = true;
};

bool from_debug_offsets(int minor, const void* runtime, PythonLayout& out) {
  const auto address = reinterpret_cast<std::uint64_t>(runtime);
  if (!readable(address, 800) || std::memcmp(runtime, "xdebugpy", 8) != 0) return false;
  DebugOffsets offsets(runtime);
  if (((offsets.word(1) >> 16) & 0xff) != static_cast<std::uint64_t>(minor)) return false;
  const bool free_threaded = offsets.word(2) != 0;
  const OffsetGroups& at = minor == 13 ? kGroups313 : kGroups314;

  PythonLayout layout;
  // The thread state is larger than what field() accepts.
  layout.thread_frame = static_cast<std::uint16_t>(offsets.word(at.thread + 4));
  layout.frame_previous = offsets.field(at.frame, 1);
  layout.frame_code = offsets.field(at.frame, 2);
  layout.frame_instr = offsets.field(at.frame, 3);
  layout.frame_locals = offsets.field(at.frame, 4);
  layout.frame_owner = static_cast<std::int16_t>(offsets.field(at.frame, 5));
  layout.code_file = offsets.field(at.code, 1);
  layout.code_name = offsets.field(at.code, 3);
  layout.code_lines = offsets.field(at.code, 4);
  layout.code_first_line = offsets.field(at.code, 5);
  layout.code_instructions = offsets.field(at.code, 9);
  layout.code_bytes = layout.code_instructions;
  layout.object_type = offsets.field(at.object, 1);
  layout.bytes_size = offsets.field(at.bytes, 1);
  layout.bytes_data = offsets.field(at.bytes, 2);
  layout.text_state = offsets.field(at.text, 1);
  layout.text_length = offsets.field(at.text, 2);
  layout.text_ascii_data = offsets.field(at.text, 3);
  layout.text_wide_data = static_cast<std::uint16_t>(layout.text_ascii_data + 16);
  if (minor == 13) layout.code_version = 92;  // not among the offsets
  if (minor >= 14) {
    layout.pointer_mask = ~std::uint64_t{3};
    if (free_threaded) {
      layout.frame_tlbc = offsets.field(at.frame, 7);
      layout.code_tlbc = offsets.field(at.code, 10);
    }
  }
  if (!offsets.fits() || layout.thread_frame == 0 || layout.thread_frame > 1024) return false;
  out = layout;
  return true;
}

}  // namespace

bool python_layout(int major, int minor, const void* debug_offsets, PythonLayout& out) {
  if (major != 3) return false;
  switch (minor) {
    case 9:
      out = frame_objects(104, 360, InstrKind::byte_offset, LineTable::increments);
      return true;
    case 10:
      out = frame_objects(96, 352, InstrKind::unit_offset, LineTable::ranges);
      return true;
    case 11:
      out = python_311();
      return true;
    case 12:
      out = python_312();
      return true;
    case 13:
    case 14:
      return debug_offsets != nullptr && from_debug_offsets(minor, debug_offsets, out);
    default:
      return false;
  }
}

}  // namespace vramscope::stacks
