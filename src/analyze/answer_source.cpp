#include <algorithm>
#include <map>
#include <set>

#include "analyze/query/state.h"
#include "analyze/source_lines.h"
#include "support/python_paths.h"

namespace vramscope::analyze {
namespace {

bool is_named(std::string_view path, std::string_view file) {
  if (path == file) return true;
  return path.size() > file.size() && path.ends_with(file) && path[path.size() - file.size() - 1] == '/';
}

// The file of that name; if there are several, one of the user's rather than of an installed package.
trace::StringId find_path(const Store& store, std::string_view file) {
  std::set<trace::StringId> ids;
  for (const trace::SourceFile& entry : store.dictionaries().source_files) ids.insert(entry.file);
  for (const trace::Frame& frame : store.dictionaries().frames) ids.insert(frame.file);
  for (const trace::OpSource& source : store.dictionaries().op_sources) ids.insert(source.file);
  trace::StringId best{};
  for (const trace::StringId id : ids) {
    const std::string_view path = store.text(id);
    if (!is_named(path, file)) continue;
    if (path == file) return id;
    if (best == trace::StringId{} || (support::is_installed_python(store.text(best)) && !support::is_installed_python(path)))
      best = id;
  }
  return best;
}

}  // namespace

KeptSource Engine::source(std::string_view file) const {
  const Store& store = state_->store;
  KeptSource out{.path = std::string(file), .state = {}, .lines = {}};
  const trace::StringId id = file.empty() ? trace::StringId{} : find_path(store, file);
  if (id == trace::StringId{}) return out;
  out.path = store.text(id);
  for (const trace::SourceFile& entry : store.dictionaries().source_files)
    if (entry.file == id) out.state = entry.state;
  std::map<std::uint64_t, std::string_view> lines;
  for (const trace::SourceLine& line : store.dictionaries().source_lines)
    if (line.file == id && lines.size() < kMostSourceLines) lines.try_emplace(line.line, store.text(line.text));
  for (const auto& [number, text] : lines) out.lines.emplace_back(number, text);
  return out;
}

}  // namespace vramscope::analyze
