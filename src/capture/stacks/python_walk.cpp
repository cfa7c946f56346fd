#include "capture/stacks/python_walk.h"

#include <atomic>

#include <link.h>

#include "capture/elf_symbols.h"
#include "capture/stacks/python_code.h"
#include "record/recorder.h"

namespace vramscope::stacks {
namespace {

enum State : int { kLooking = 0, kBusy, kReady, kOff };
std::atomic<int> g_state{kLooking};
std::atomic<std::uint32_t> g_attempts{0};
Python g_python;

// Not through dlsym: another thread may hold the loader's lock and wait for this one, and a failure would change the program's
// dlerror().
template <typename Function>
Function symbol(const char* name) {
  return reinterpret_cast<Function>(capture::symbol_in_any(name));
}

struct TextRange {
  std::uint64_t inside, begin, end;
};

int find_text(dl_phdr_info* info, std::size_t, void* data) {
  auto& range = *static_cast<TextRange*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const std::uint64_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || range.inside - begin >= header.p_memsz) continue;
    range.begin = begin;
    range.end = begin + header.p_memsz;
    return 1;
  }
  return 0;
}

// Parses "3.11.7 (main, ...".
bool parse_version(const char* text, int& major, int& minor) {
  const auto number = [&text](int& out) {
    out = 0;
    const char* const begin = text;
    while (*text >= '0' && *text <= '9' && out < 1000) out = 10 * out + (*text++ - '0');
    return text != begin;
  };
  if (text == nullptr || !number(major) || *text != '.') return false;
  ++text;
  return number(minor);
}

// If it is not found yet, the state stays kLooking: the interpreter may be loaded later, and this thread may have no frames.
State look() {
  const auto version = symbol<const char* (*)()>("Py_GetVersion");
  const auto initialized = symbol<int (*)()>("Py_IsInitialized");
  const auto thread_state = symbol<void* (*)()>("PyGILState_GetThisThreadState");
  const auto code_type = symbol<std::uint64_t>("PyCode_Type");
  if (version == nullptr || initialized == nullptr || thread_state == nullptr || code_type == 0 || initialized() == 0)
    return kLooking;

  int major = 0;
  int minor = 0;
  Python py;
  py.code_type = code_type;
  py.thread_state = thread_state;
  if (!parse_version(version(), major, minor) || !python_layout(major, minor, symbol<void*>("_PyRuntime"), py.layout)) {
    give_up_python("this version of Python is not known");
    return kOff;
  }
  if (thread_state() == nullptr || first_frame(py) == 0) return kLooking;
  if (!fits_live_chain(py, py.layout)) {
    give_up_python("the frames of this Python do not have the expected layout");
    return kOff;
  }
  TextRange range{reinterpret_cast<std::uint64_t>(thread_state), 0, 0};
  dl_iterate_phdr(find_text, &range);
  py.text_begin = range.begin;
  py.text_end = range.end;
  g_python = py;
  return kReady;
}

}  // namespace

const Python* python() {
  const int state = g_state.load(std::memory_order_acquire);  // partner: the release below, after g_python is filled
  if (__builtin_expect(state == kReady, 1)) return &g_python;
  if (state != kLooking) return nullptr;
  // Searching is expensive in a program without Python: try at the 1st, 2nd, 4th, ... call.
  const std::uint32_t attempt = g_attempts.fetch_add(1, std::memory_order_relaxed) + 1;
  if (attempt > 64 && (attempt & (attempt - 1)) != 0) return nullptr;
  int expected = kLooking;
  if (!g_state.compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) return nullptr;
  const State found = look();
  g_state.store(found, std::memory_order_release);
  return found == kReady ? &g_python : nullptr;
}

bool fits_live_chain(const Python& py, PythonLayout& layout) {
  Python trial = py;
  trial.layout = layout;
  unsigned frames = 0;
  bool sound = true;
  bool text_known = false;
  const WalkEnd end = walk_python(trial, [&](const PythonFrame& frame) {
    ++frames;
    const std::uint64_t name = peek<std::uint64_t>(frame.code + layout.code_name);
    if (!text_known) {  // the first frames may have names outside ASCII
      text_known = learn_text_state(trial.layout, name);
    }
    const std::int64_t offset = instruction_offset(trial, frame);
    sound = sound && offset >= -2 && offset < (1 << 24) && peek<std::int32_t>(frame.code + layout.code_first_line) >= 0;
    return sound;
  });
  if (end != WalkEnd::whole || frames == 0 || !sound || !text_known) return false;
  char name[64];
  walk_python(trial, [&](const PythonFrame& frame) {
    sound = sound && read_text(trial.layout, peek<std::uint64_t>(frame.code + layout.code_name), name, sizeof name) != 0 &&
            read_text(trial.layout, peek<std::uint64_t>(frame.code + layout.code_file), name, sizeof name) != 0;
    return sound;
  });
  if (sound) layout = trial.layout;
  return sound;
}

std::int64_t instruction_offset(const Python& py, const PythonFrame& frame) {
  const PythonLayout& layout = py.layout;
  switch (layout.instr) {
    case InstrKind::byte_offset:
      return static_cast<std::int32_t>(frame.instr);
    case InstrKind::unit_offset:
      return 2 * std::int64_t{static_cast<std::int32_t>(frame.instr)};
    case InstrKind::pointer:
      break;
  }
  std::uint64_t begin = frame.code + layout.code_instructions;
  if (layout.code_tlbc != 0) {  // free-threaded: { Py_ssize_t size; char* entries[size]; }, this thread's entry
    const auto index = peek<std::int32_t>(frame.frame + layout.frame_tlbc);
    const auto copies = peek<std::uint64_t>(frame.code + layout.code_tlbc);
    if (index > 0 && readable(copies, 8) && index < peek<std::int64_t>(copies)) {
      const std::uint64_t entry = copies + 8 + 8 * static_cast<std::uint64_t>(index);
      if (readable(entry, 8)) begin = peek<std::uint64_t>(entry);
    }
  }
  return static_cast<std::int64_t>(frame.instr - begin);
}

bool python_usable() { return g_state.load(std::memory_order_relaxed) != kOff; }

void give_up_python(const char* why) {
  g_state.store(kOff, std::memory_order_release);
  record::say_once(why, "Python stacks are off; use --stacks=native, or --stacks=none to silence this");
}

void replace_python_for_test(const Python& py) {
  g_python = py;
  g_state.store(kReady, std::memory_order_release);
}

}  // namespace vramscope::stacks
