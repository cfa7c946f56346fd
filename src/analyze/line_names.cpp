#include "analyze/line_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace vramscope::analyze {
namespace {

std::string_view word(const trace::Dictionaries& words, trace::StringId id) {
  auto i = static_cast<std::size_t>(id);
  return i < words.strings.size() ? std::string_view(words.strings[i]) : std::string_view();
}

// The last `parts` parts of a path.
std::string_view tail(std::string_view path, std::size_t parts) {
  std::size_t at = path.size();
  while (parts-- > 0) {
    if (at == 0) return path;
    at = path.rfind('/', at - 1);
    if (at == std::string_view::npos) return path;
  }
  return path.substr(at + 1);
}

// A file that torch.compile wrote: its name is a hash of 51 letters and digits after a "c". Or one that AutoGraph wrote, which is
// gone when the program ends.
bool is_generated(std::string_view file) {
  std::string_view name = tail(file, 1);
  if (name.starts_with("__autograph_generated_file")) return true;
  return name.size() == 55 && name.front() == 'c' && name.ends_with(".py") &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == 52;
}

// Code without a file that somebody typed (python -c, a prompt, a notebook's cell) or made at run time; not what the interpreter
// and libraries make for themselves.
bool is_typed(std::string_view file) {
  constexpr std::string_view kMade[] = {"<frozen ", "<eval_with_key>", "<attrs generated", "<decorator-gen",
                                        "<__array_function__"};
  return file.starts_with('<') && std::ranges::none_of(kMade, [&](std::string_view made) { return file.starts_with(made); });
}

bool is_library(std::string_view file) {
  return file.find("site-packages") != std::string_view::npos || file.find("dist-packages") != std::string_view::npos ||
         file.find("/lib/python") != std::string_view::npos || file.find("/vramscope/") != std::string_view::npos ||
         file.starts_with('<') || !file.ends_with(".py") || is_generated(file);
}

}  // namespace

LineNames::LineNames(const trace::Dictionaries& words) : words_(words) {
  std::set<std::size_t> ids;
  for (const trace::Frame& frame : words.frames) ids.insert(static_cast<std::size_t>(frame.file));
  for (const trace::OpSource& source : words.op_sources) ids.insert(static_cast<std::size_t>(source.file));
  // The user's files are told apart among themselves: a library may have a train.py too, whose lines are hardly ever shown.
  std::map<std::string_view, std::vector<std::string_view>> own, all;
  for (std::size_t id : ids) {
    std::string_view path = word(words, static_cast<trace::StringId>(id));
    all[tail(path, 1)].push_back(path);
    if (!is_library(path)) own[tail(path, 1)].push_back(path);
  }
  for (std::size_t id : ids) {
    std::string_view path = word(words, static_cast<trace::StringId>(id));
    const auto& equals = (is_library(path) ? all : own)[tail(path, 1)];
    std::size_t parts = 1;
    for (std::string_view other : equals)
      while (other != path && tail(other, parts) == tail(path, parts) && parts < path.size()) ++parts;
    files_[id] = tail(path, parts);
  }
}

std::string LineNames::of(trace::StringId file, std::uint64_t line) const {
  auto found = files_.find(static_cast<std::size_t>(file));
  return fmt::format("{}:{}", found != files_.end() ? std::string_view(found->second) : tail(word(words_, file), 1), line);
}

std::string LineNames::of_stack(std::size_t stack) const {
  if (stack == 0 || stack >= words_.stacks.size()) return {};
  const trace::Frame *any = nullptr, *typed = nullptr;
  for (trace::FrameId id : words_.stacks[stack].frames) {
    auto i = static_cast<std::size_t>(id);
    if (i >= words_.frames.size()) continue;
    const trace::Frame& frame = words_.frames[i];
    std::string_view file = word(words_, frame.file);
    if (file.empty() || frame.line == 0) continue;
    if (!is_library(file)) return of(frame.file, frame.line);
    if (typed == nullptr && is_typed(file)) typed = &frame;
    if (any == nullptr) any = &frame;
  }
  const trace::Frame* const best = typed != nullptr ? typed : any;
  return best == nullptr ? std::string() : of(best->file, best->line);
}

}  // namespace vramscope::analyze
