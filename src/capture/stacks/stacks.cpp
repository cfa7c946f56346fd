#include "capture/stacks/stacks.h"

#include <atomic>
#include <cstring>

#include "capture/stacks/compiled_lines.h"
#include "capture/stacks/hash.h"
#include "capture/stacks/modules.h"
#include "capture/stacks/native_walk.h"
#include "capture/stacks/python_code.h"
#include "capture/stacks/python_walk.h"
#include "capture/stacks/shared_cache.h"
#include "capture/stacks/watches.h"
#include "record/options.h"
#include "record/recorder.h"

namespace vramscope::stacks {
namespace {

constexpr std::size_t kMaxPython = 192;
constexpr std::size_t kMaxNative = 64;

// Keyed by addresses (cheap), storing ids derived from contents (the same in every run). All keys contain the spool's
// generation, so that they are empty for a new spool, after a fork or a new attach.
SharedCache<2, 16> g_stacks;  // -> stack id, labels
SharedCache<2, 15> g_frames;  // code and instruction -> code id and line, content hash
SharedCache<2, 13> g_codes;   // code -> code id, content hash
std::atomic<std::uint64_t> g_label_epoch{0};
std::atomic<std::uint32_t> g_next_code{1};

struct CodeInfo {
  std::uint32_t id = 0;
  std::uint64_t hash = 0;
};

CodeInfo define_code(const char* name, std::size_t name_bytes, const char* file, std::size_t file_bytes,
                     std::uint32_t first_line) {
  const std::uint32_t function_id = record::intern(name, name_bytes);
  const std::uint32_t file_id = record::intern(file, file_bytes);
  auto* const head = record::reserve(spool::RecordKind::code, sizeof(spool::CodeRecord));
  if (head == nullptr) return {};
  CodeInfo info{g_next_code.fetch_add(1, std::memory_order_relaxed), 0};
  auto* const record = reinterpret_cast<spool::CodeRecord*>(head);
  record->id = info.id;
  record->function = function_id;
  record->file = file_id;
  record->first_line = first_line;
  record::publish(head);
  info.hash = hash_bytes(file, file_bytes, hash_bytes(name, name_bytes, first_line));
  return info;
}

CodeInfo define_code(const Python& py, const PythonFrame& frame) {
  const PythonLayout& layout = py.layout;
  char name[256];
  char file[1024];
  const std::size_t name_bytes = read_text(layout, peek<std::uint64_t>(frame.code + layout.code_name), name, sizeof name);
  const std::size_t file_bytes = read_text(layout, peek<std::uint64_t>(frame.code + layout.code_file), file, sizeof file);
  return define_code(name, name_bytes, file, file_bytes, peek<std::uint32_t>(frame.code + layout.code_first_line));
}

// The code object behind a key, defined at its first use; id 0 if there is no room for it.
template <typename Define>
CodeInfo code_info(std::uint64_t key, Define define) {
  decltype(g_codes)::Entry known;
  if (g_codes.find(key, known)) return {static_cast<std::uint32_t>(known.value[0]), known.value[1]};
  const CodeInfo code = define();
  if (code.id != 0) g_codes.put(key, {{code.id, code.hash}});
  return code;
}

struct FrameInfo {
  std::uint32_t code = 0;
  std::uint32_t line = 0;
  std::uint64_t hash = 0;
};

FrameInfo frame_info(const Python& py, const PythonFrame& frame, std::uint64_t epoch) {
  const std::uint64_t code_key = fold(frame.code ^ kHash0, frame.identity ^ epoch ^ kHash1);
  const std::uint64_t key = fold(code_key, frame.instr ^ kHash2);
  decltype(g_frames)::Entry known;
  if (g_frames.find(key, known)) {
    return {static_cast<std::uint32_t>(known.value[0] >> 32), static_cast<std::uint32_t>(known.value[0]), known.value[1]};
  }
  const CodeInfo code = code_info(code_key, [&] { return define_code(py, frame); });
  if (code.id == 0) return {};
  const std::uint32_t line = line_at(py.layout, frame.code, instruction_offset(py, frame));
  const FrameInfo info{code.id, line, fold(code.hash ^ kHash1, line ^ kHash0)};
  g_frames.put(key, {{(std::uint64_t{info.code} << 32) | info.line, info.hash}});
  return info;
}

// A place that is not on the stack, because a compiler moved its code elsewhere.
FrameInfo place_info(const Place& place, std::uint64_t epoch) {
  const std::uint64_t key = fold((std::uint64_t{place.file} << 32 | place.function) ^ kHash1, epoch ^ kHash2);
  const CodeInfo code = code_info(key, [&] {
    const char* const name = layer_text(place.function);
    const char* const file = layer_text(place.file);
    return define_code(name, std::strlen(name), file, std::strlen(file), 0);
  });
  if (code.id == 0) return {};
  return {code.id, place.line, fold(code.hash ^ kHash1, place.line ^ kHash0)};
}

// The record's frames are filled in place once the hash is known; they are collected on this stack first.
struct Collected {
  spool::Frame frames[kMaxNative + kMaxPython];
  std::uint32_t count = 0;
  std::uint32_t truncated = 0;
  std::uint64_t hash = kHash2;
  bool whole = true;  // false: something could not be defined

  void add(const spool::Frame& frame, std::uint64_t frame_hash) {
    frames[count++] = frame;
    hash = chain(hash, frame_hash);
  }
  bool full() {
    truncated += count == kMaxNative + kMaxPython ? 1 : 0;
    return truncated != 0;
  }
  void add(const FrameInfo& info) {
    if (info.code == 0) whole = false;
    add({info.code, info.line, 0}, info.hash);
  }
};

bool write_stack(const Collected& stack) {
  const std::size_t bytes = sizeof(spool::StackRecord) + stack.count * sizeof(spool::Frame);
  auto* const head = record::reserve(spool::RecordKind::stack, bytes);
  if (head == nullptr) return false;
  auto* const record = reinterpret_cast<spool::StackRecord*>(head);
  record->id = stack.hash;
  record->count = stack.count;
  record->truncated = stack.truncated;
  std::memcpy(record + 1, stack.frames, stack.count * sizeof(spool::Frame));
  record::publish(head);
  return true;
}

constexpr std::uint32_t kHandleMask = (1u << 17) - 1;  // handles of names (layer_text) are below it
static_assert(static_cast<unsigned>(Phase::kCount) <= 16);

Snapshot unpack(const decltype(g_stacks)::Entry& entry) {
  const std::uint64_t labels = entry.value[1];
  Snapshot out;
  out.id = entry.value[0];
  out.layer = static_cast<std::uint32_t>(labels) & kHandleMask;
  out.part = static_cast<std::uint32_t>(labels >> 17) & kHandleMask;
  out.op = static_cast<std::uint32_t>(labels >> 34) & 0xffffff;
  out.phase = static_cast<Phase>((labels >> 58) & 15);
  out.has_frames = ((labels >> 62) & 1) != 0;
  return out;
}

std::uint64_t pack_labels(const Labels& labels, bool has_frames) {
  const bool in_part = labels.part != 0 && *labels.plumbing == '\0';
  const std::uint32_t op_id = in_part ? intern_part(labels.layer, labels.part) : intern_op(labels.layer, labels.plumbing);
  const std::uint64_t layer = labels.layer & kHandleMask;
  const std::uint64_t part = in_part ? labels.part & kHandleMask : 0;
  const std::uint64_t op = op_id < (1u << 24) ? op_id : 0;
  return layer | (part << 17) | (op << 34) | (std::uint64_t{static_cast<std::uint8_t>(labels.phase)} << 58) |
         (std::uint64_t{has_frames} << 62);
}

struct Wanted {
  bool python_frames;
  bool native_frames;
  bool labels;
};

[[gnu::noinline]] Snapshot define(const Python* py, const Wanted& wanted, const std::uint64_t* native, std::size_t native_count,
                                  std::uint64_t key, std::uint64_t epoch) {
  Collected stack;
  for (std::size_t i = 0; i < native_count; ++i) {
    const std::uint64_t hash = native_hash(native[i], epoch);
    if (hash == 0) break;  // not code: the walk went astray here
    stack.add({0, 0, native[i]}, hash);
  }
  LabelReader labels;
  bool has_frames = false;
  if (py != nullptr) {
    walk_python(*py, [&](const PythonFrame& frame) {
      has_frames = true;
      const CompiledLine compiled = compiled_line(*py, frame);
      if (wanted.labels) labels.add(py->layout, frame, compiled.part);
      if (!wanted.python_frames) return true;
      for (Place place = place_at(compiled.place); place.file != 0; place = place_at(place.outer))
        if (!stack.full()) stack.add(place_info(place, epoch));
      if (!stack.full()) stack.add(frame_info(*py, frame, epoch));
      return true;
    });
  }
  decltype(g_stacks)::Entry entry{{0, pack_labels(labels.finish(), has_frames)}};
  if (stack.truncated != 0) stack.hash = chain(stack.hash, stack.truncated);  // as deep as this, and no other
  if (stack.count != 0 && stack.whole) {
    if (!write_stack(stack)) return unpack(entry);
    entry.value[0] = stack.hash;
  }
  if (stack.whole) g_stacks.put(key, entry);
  return unpack(entry);
}

}  // namespace

const char* phase_name(Phase phase) {
  static constexpr const char* kNames[] = {"",     "input",   "forward", "backward", "optimizer",
                                           "save", "compile", "forward", "forward",  "evaluate"};
  static_assert(sizeof kNames / sizeof *kNames == static_cast<std::size_t>(Phase::kCount));
  return phase < Phase::kCount ? kNames[static_cast<std::size_t>(phase)] : "";
}

Mode mode() {
  const record::Options& options = record::g_options;
  if (options.python_stacks) return options.native_stacks ? Mode::both : Mode::python;
  return options.native_stacks ? Mode::native : Mode::none;
}

void forget_labels() { g_label_epoch.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t capture() { return mode() == Mode::none ? 0 : snapshot().id; }

Snapshot snapshot() {
  const Mode how = mode();
  const Wanted wanted{how == Mode::python || how == Mode::both, how == Mode::native || how == Mode::both,
                      g_watches.load(std::memory_order_relaxed) != 0};
  const Python* const py = wanted.python_frames || wanted.labels ? python() : nullptr;
  const std::uint64_t innermost = py != nullptr ? first_frame(*py) : 0;
  if (innermost == 0 && !wanted.native_frames) return {};  // a thread of the framework's own, the common case there
  const std::uint64_t epoch = spool_generation();
  std::uint64_t key = fold(epoch ^ kHash0, g_label_epoch.load(std::memory_order_relaxed) ^ kHash1);
  std::size_t frames = 0;
  if (innermost != 0) {
    const PythonLayout& layout = py->layout;
    const WalkEnd end = walk_python(*py, innermost, [&](const PythonFrame& frame) {
      key = chain(key, fold(frame.code ^ kHash1, frame.instr ^ kHash2) ^ (frame.identity + layer_object(layout, frame)));
      ++frames;
      return true;
    });
    if (__builtin_expect(end == WalkEnd::broken, 0)) {
      give_up_python("a Python frame does not look like one");
      return {};
    }
  }
  std::uint64_t native[kMaxNative];
  std::size_t native_count = 0;
  if (wanted.native_frames) {
    NativeLimits limits;
    if (frames != 0 && wanted.python_frames) limits = {py->text_begin, py->text_end};
    native_count = record::g_options.unwind_tables ? walk_unwind_tables(native, kMaxNative, limits)
                                                   : walk_frame_pointers(native, kMaxNative, limits);
    for (std::size_t i = 0; i < native_count; ++i) key = chain(key, fold(native[i] ^ kHash1, kHash2));
  }
  if (frames == 0 && native_count == 0) return {};
  key = fold(key, kHash1);
  decltype(g_stacks)::Entry entry;
  if (__builtin_expect(g_stacks.find(key, entry), 1)) return unpack(entry);
  return define(frames != 0 ? py : nullptr, wanted, native, native_count, key, epoch);
}

bool verify(const std::uint64_t* codes, const std::uint32_t* lines, std::size_t count) {
  const Python* const py = python();
  if (py == nullptr) return false;
  std::size_t at = 0;
  bool same = true;
  const WalkEnd end = walk_python(*py, [&](const PythonFrame& frame) {
    same = at < count && codes[at] == frame.code &&
           (at == 0 || lines[at] == line_at(py->layout, frame.code, instruction_offset(*py, frame)));
    ++at;
    return same;
  });
  if (end == WalkEnd::whole && same && at == count) return true;
  give_up_python("the Python frames found differ from those that Python reports");
  return false;
}

}  // namespace vramscope::stacks
