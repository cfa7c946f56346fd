// Lines of source with the bytes they hold, and completions for the filter box.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "serve/engine_service.h"
#include "serve/words.h"

namespace vramscope::serve {

namespace {

constexpr std::uintmax_t kLargestFile = 2 * 1024 * 1024;
constexpr std::size_t kMostLines = 20000;
constexpr std::size_t kMostFiles = 200;

struct Line {
  std::string file;
  std::uint64_t number = 0;
};

// "path/train.py:13"
std::optional<Line> parse_line(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Line out{std::string(text.substr(0, colon)), 0};
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), out.number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// Only files that the recording itself names are read, whatever the request says.
std::string read_text(const std::string& path, std::uint64_t recorded_us, std::vector<std::string>& lines) {
  std::error_code error;
  if (!path.starts_with('/') || !std::filesystem::is_regular_file(path, error))
    return fmt::format("The file {} is not on this machine; the bytes beside its lines are as recorded.", path);
  if (std::filesystem::file_size(path, error) > kLargestFile || error)
    return fmt::format("The file {} is larger than 2 MiB.", path);
  std::ifstream in(path);
  if (!in) return fmt::format("The file {} cannot be opened; the bytes beside its lines are as recorded.", path);
  for (std::string line; lines.size() < kMostLines && std::getline(in, line);) lines.push_back(line);
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(path, error));
  const auto written_us = std::chrono::duration_cast<std::chrono::microseconds>(written.time_since_epoch()).count();
  if (!error && recorded_us > 0 && written_us > static_cast<std::int64_t>(recorded_us))
    return "The file was changed after the recording: its lines may have moved.";
  return "ok";
}

// Lines carry the last parts of the file's path; the whole is in the call stacks of the blocks.
std::string full_path(const analyze::Engine& engine, const std::vector<analyze::Group>& groups, const std::string& file) {
  std::set<std::uint32_t> seen;
  for (const analyze::Group& group : groups) {
    const auto block = engine.allocation(group.example);
    if (!block || seen.size() > 2000 || !seen.insert(block->stack).second) continue;
    for (const analyze::Frame& frame : engine.stack(block->stack))
      if (frame.file.starts_with('/') && frame.file.ends_with("/" + file)) return frame.file;
  }
  return file;
}

// The line that holds the most.
std::string sentence_of(const std::map<std::string, std::map<std::uint64_t, SourceLine>>& files, analyze::Bytes total,
                        std::string_view at) {
  std::string where;
  double most = 0;
  for (const auto& [path, lines] : files)
    for (const auto& [number, line] : lines)
      if (line.bytes > most) most = line.bytes, where = fmt::format("{}:{}", path, number);
  if (where.empty()) return "No line of source is known for what is live here.";
  return fmt::format("{} holds the most: {} of the {} that are live {}.", where, size_text(static_cast<analyze::Bytes>(most)),
                     size_text(total), instant_words(at));
}

}  // namespace

Result<Source> EngineService::source(const SourceParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const std::string at = usable_instant(engine, params.at);
  const auto live = engine.live({.at = at, .by = {analyze::By::line, analyze::By::category}, .where = {}, .limit = 0});
  if (!live) return std::unexpected(live.error());
  std::map<std::string, std::map<std::uint64_t, SourceLine>> files;
  std::map<std::pair<std::string, std::uint64_t>, double> largest;
  double known = 0;
  for (const analyze::Group& group : live->groups) {
    const auto line = parse_line(group.keys[0]);
    if (!line) continue;
    SourceLine& to = files[line->file][line->number];
    to.line = line->number;
    to.bytes += static_cast<double>(group.bytes);
    to.blocks += group.count;
    known += static_cast<double>(group.bytes);
    double& most = largest[{line->file, line->number}];
    if (static_cast<double>(group.bytes) >= most) most = static_cast<double>(group.bytes), to.category = group.keys[1];
  }
  Source out;
  out.t = static_cast<double>(live->time_us);
  for (const auto& [path, lines] : files) {
    SourceFile file{.path = path, .lines = lines.size()};
    for (const auto& [number, line] : lines) file.bytes += line.bytes;
    out.files.push_back(std::move(file));
  }
  std::sort(out.files.begin(), out.files.end(), [](const SourceFile& a, const SourceFile& b) { return a.bytes > b.bytes; });
  if (out.files.size() > kMostFiles) out.files.resize(kMostFiles);
  out.sentence = sentence_of(files, live->total, at);
  out.note = fmt::format("At {:.6f} s. Lines of {} hold {}. The line of a graph op is where it was built.", out.t / 1e6,
                         plural(files.size(), "file", "files"), size_text(static_cast<analyze::Bytes>(known)));
  if (out.files.empty()) return out;
  // A request may name the file by its last parts.
  std::string wanted = params.file.empty() ? out.files[0].path : params.file;
  for (const SourceFile& file : out.files)
    if (file.path == wanted || file.path.ends_with("/" + wanted)) {
      wanted = file.path;
      break;
    }
  SourceText text{.path = wanted};
  const auto at_file = files.find(wanted);
  if (at_file == files.end()) {
    text.status = "No live block belongs to this file at this instant.";
  } else {
    for (const auto& [number, line] : at_file->second) text.lines.push_back(line);
    if (!wanted.starts_with('/')) text.path = full_path(engine, live->groups, wanted);
    text.status = read_text(text.path, trace.overview().start_realtime_us, text.text);
  }
  out.file = std::move(text);
  return out;
}

Result<Suggestions> EngineService::suggest(const SuggestParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  Suggestions out;
  for (const analyze::Completion& completion : (*found)->engine().complete(params.text)) {
    Suggestion item{.text = completion.text, .kind = "field"};
    if (completion.bytes > 0) item.bytes = static_cast<double>(completion.bytes);
    out.items.push_back(std::move(item));
  }
  if (const auto status = (*found)->engine().check_filter(params.text); !status) out.error = status.error().message;
  return out;
}

}  // namespace vramscope::serve
