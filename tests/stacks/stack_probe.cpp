// The stack walker with a recorder that keeps definitions in plain arrays, for ctypes: lets each installed Python compare what
// the walker finds with what the interpreter itself says.
#include <execinfo.h>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "capture/stacks/native_walk.h"
#include "capture/stacks/python_walk.h"
#include "capture/stacks/stacks.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/state.h"

namespace {

std::mutex g_lock;
std::map<std::string, std::uint32_t> g_ids;
std::deque<std::string> g_texts{""};  // grows without moving what was handed out
struct Code {
  std::uint32_t function, file, first_line;
};
std::map<std::uint32_t, Code> g_codes;
struct Stack {
  std::vector<vramscope::spool::Frame> frames;
  std::uint32_t truncated;
};
std::map<std::uint64_t, Stack> g_stacks;
std::string g_said;
int g_definitions = 0;
vramscope::record::Control g_fake_control{1, nullptr, nullptr, 0, false, 0, 0};

// On the heap: a library that is loaded late has little room for thread-local data.
thread_local std::vector<std::uint64_t> t_buffer;

}  // namespace

namespace vramscope::record {

std::atomic<Control*> g_control{&g_fake_control};
Options g_options;

std::uint32_t intern(const char* text, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::scoped_lock lock(g_lock);
  const auto [at, added] = g_ids.emplace(std::string(text, bytes), static_cast<std::uint32_t>(g_texts.size()));
  if (added) g_texts.emplace_back(text, bytes);
  return at->second;
}
std::uint32_t intern(const char* text) { return text == nullptr ? 0 : intern(text, std::strlen(text)); }

spool::RecordHead* reserve(spool::RecordKind kind, std::size_t bytes) {
  if (bytes > 60 * 1024) return nullptr;
  t_buffer.resize(bytes / 8 + 1);
  auto* const head = reinterpret_cast<spool::RecordHead*>(t_buffer.data());
  head->kind = kind;
  return head;
}

void publish(spool::RecordHead* head) {
  const std::scoped_lock lock(g_lock);
  ++g_definitions;
  if (head->kind == spool::RecordKind::code) {
    const auto* const code = reinterpret_cast<const spool::CodeRecord*>(head);
    g_codes[code->id] = {code->function, code->file, code->first_line};
  } else if (head->kind == spool::RecordKind::stack) {
    const auto* const stack = reinterpret_cast<const spool::StackRecord*>(head);
    const auto* const frames = reinterpret_cast<const spool::Frame*>(stack + 1);
    g_stacks[stack->id] = {{frames, frames + stack->count}, stack->truncated};
  }
}

void tag(std::uint64_t, std::uint64_t, Category, const char*, const char*) {}

void say_once(const char* what, const char*) {
  const std::scoped_lock lock(g_lock);
  g_said = what;
}

}  // namespace vramscope::record

using namespace vramscope;

extern "C" {

void probe_mode(int python, int native, int tables) {
  record::g_options.python_stacks = python != 0;
  record::g_options.native_stacks = native != 0;
  record::g_options.unwind_tables = tables != 0;
}

std::uint64_t probe_capture() { return stacks::capture(); }

// Captures `count` times; returns the last id. For timing without the cost of ctypes.
std::uint64_t probe_capture_many(int count) {
  std::uint64_t id = 0;
  for (int i = 0; i < count; ++i) id = stacks::capture();
  return id;
}

struct ProbeLabels {
  std::uint64_t id;
  std::uint32_t layer, op, phase, has_frames;
};
void probe_snapshot(ProbeLabels* out) {
  const stacks::Snapshot shot = stacks::snapshot();
  *out = {shot.id, record::intern(stacks::layer_text(shot.layer)), shot.op, static_cast<std::uint32_t>(shot.phase),
          shot.has_frames};
}

int probe_watch(std::uint64_t code, int role, int phase, int slot, int cell, const char* text) {
  return stacks::watch({code, static_cast<stacks::Role>(role), static_cast<stacks::Phase>(phase),
                        static_cast<std::uint16_t>(slot), cell != 0, text});
}
void probe_name_object(std::uint64_t object, const char* name) {
  stacks::name_object(object, name);
  stacks::forget_labels();
}

int probe_verify(const std::uint64_t* codes, const std::uint32_t* lines, std::size_t count) {
  return stacks::verify(codes, lines, count);
}

int probe_stack_size(std::uint64_t id) {
  const std::scoped_lock lock(g_lock);
  const auto at = g_stacks.find(id);
  return at == g_stacks.end() ? -1 : static_cast<int>(at->second.frames.size());
}
int probe_truncated(std::uint64_t id) {
  const std::scoped_lock lock(g_lock);
  return static_cast<int>(g_stacks.at(id).truncated);
}
std::uint64_t probe_frame(std::uint64_t id, int index, const char** function, const char** file, int* line, int* first_line) {
  const std::scoped_lock lock(g_lock);
  const spool::Frame frame = g_stacks.at(id).frames.at(static_cast<std::size_t>(index));
  static const Code kNone{0, 0, 0};
  const Code code = frame.code == 0 ? kNone : g_codes.at(frame.code);
  *function = g_texts[code.function].c_str();
  *file = g_texts[code.file].c_str();
  *line = static_cast<int>(frame.line);
  *first_line = static_cast<int>(code.first_line);
  return frame.address;
}
const char* probe_text(std::uint32_t id) {
  const std::scoped_lock lock(g_lock);
  return id < g_texts.size() ? g_texts[id].c_str() : "";
}
const char* probe_said() { return g_said.c_str(); }
int probe_definitions() { return g_definitions; }
void probe_new_spool() { g_fake_control.generation.fetch_add(1); }

// A foreign layout: every offset moved by `shift` bytes or replaced by noise. Returns 1 if the walker accepts it for the live
// chain. Must not crash whatever the numbers are.
int probe_foreign_layout(const std::uint16_t* noise, int count, int trusted) {
  const stacks::Python* const real = stacks::python();
  if (real == nullptr) return -1;
  stacks::Python trial = *real;
  std::uint16_t* const fields[] = {&trial.layout.thread_frame, &trial.layout.frame_previous,  &trial.layout.frame_code,
                                   &trial.layout.frame_instr,  &trial.layout.code_file,       &trial.layout.code_name,
                                   &trial.layout.code_lines,   &trial.layout.code_first_line, &trial.layout.text_length,
                                   &trial.layout.object_type};
  for (int i = 0; i < count && i < 10; ++i)
    if (noise[i] != 0xffff) *fields[i] = noise[i];
  stacks::PythonLayout layout = trial.layout;
  const bool fits = stacks::fits_live_chain(trial, layout);
  if (trusted != 0) {  // what happens if a wrong layout were believed all the same
    const stacks::Python saved = *real;
    stacks::replace_python_for_test(trial);
    stacks::capture();
    stacks::replace_python_for_test(saved);
  }
  return fits;
}

// The native stack from here by both ways and by glibc.
[[gnu::noinline]] int probe_native(int depth, std::uint64_t* frames, std::uint64_t* tables, std::uint64_t* glibc, int capacity,
                                   int* counts) {
  if (depth > 0) {
    const int result = probe_native(depth - 1, frames, tables, glibc, capacity, counts);
    asm volatile("" ::: "memory");  // not a tail call
    return result;
  }
  void* raw[256];
  const auto room = static_cast<std::size_t>(capacity);
  counts[0] = static_cast<int>(stacks::walk_frame_pointers(frames, room, {}));
  counts[1] = static_cast<int>(stacks::walk_unwind_tables(tables, room, {}));
  const int got = backtrace(raw, 256);
  counts[2] = got < capacity ? got : capacity;
  for (int i = 0; i < counts[2]; ++i) glibc[i] = reinterpret_cast<std::uint64_t>(raw[i]);
  return 0;
}

}  // extern "C"
