#include "collect/write/source_capture.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "support/python_paths.h"

namespace vramscope::collect {
namespace {

using trace::SourceState;

// A script need not be named .py; its first line then names the interpreter.
bool is_python_source(std::string_view path, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return false;
  const std::string_view first = text.substr(0, text.find('\n'));
  return path.ends_with(".py") || path.ends_with(".pyw") ||
         (first.starts_with("#!") && first.find("python") != std::string_view::npos);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Does not end within a character.
std::string_view cut(std::string_view line, std::size_t most) {
  if (line.size() <= most) return line;
  while (most > 0 && (static_cast<unsigned char>(line[most]) & 0xc0) == 0x80) --most;
  return line.substr(0, most);
}

bool holds_text(SourceState state) {
  return state == SourceState::kept || state == SourceState::changed || state == SourceState::limit;
}

}  // namespace

void SourceCapture::see(std::string_view file, std::uint64_t line) {
  if (!file.starts_with('/') || line == 0) return;
  auto found = files_.find(file);
  if (found == files_.end()) {
    if (files_.size() >= limits_.files) return;
    found = files_.try_emplace(std::string(file)).first;
  }
  File& entry = found->second;
  if (!holds_text(entry.state) || !entry.seen.insert(line).second) return;
  entry.wanted.insert(line);
  pending_.insert(found->first);
}

void SourceCapture::write_to(trace::Writer& writer, bool all) {
  // The user's own files first: they matter most.
  std::vector<std::string> paths(pending_.begin(), pending_.end());
  std::ranges::stable_sort(paths, {}, [](const std::string& path) { return support::is_installed_python(path); });
  if (!all && paths.size() > limits_.files_per_pass) paths.resize(limits_.files_per_pass);
  for (const std::string& path : paths) {
    write(path, files_.find(path)->second, writer);
    pending_.erase(path);
  }
}

SourceState SourceCapture::judge(const support::PlainResult& found, std::string_view path) const {
  if (!found) {
    switch (found.error()) {
      case support::PlainFault::missing:
        return SourceState::missing;
      case support::PlainFault::unreadable:
        return SourceState::withheld;
      case support::PlainFault::not_regular:
      case support::PlainFault::too_large:
        return SourceState::not_source;
    }
  }
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();  // a link's name says nothing about the file
  if (error || !is_python_source(real, found->bytes)) return SourceState::not_source;
  if (found->owner != owner_ && !found->public_readable) return SourceState::withheld;
  return found->written_us > started_us_ ? SourceState::changed : SourceState::kept;
}

void SourceCapture::write(const std::string& path, File& file, trace::Writer& writer) {
  const std::set<std::uint64_t> wanted = std::exchange(file.wanted, {});
  const bool installed = support::is_installed_python(path);
  const support::PlainResult found = support::read_plain_file(path, limits_.file_bytes);
  SourceState state = judge(found, path);
  const std::uint64_t written_us = found ? found->written_us : 0;
  // If a later read finds another file, or none, nothing is taken from it: lines of two versions must not be mixed.
  if (file.written && (!holds_text(state) || written_us != file.written_us)) state = SourceState::changed;
  const bool same = !file.written || written_us == file.written_us;
  if (found && same && holds_text(state)) {
    const std::vector<std::string_view> lines = lines_of(found->bytes);
    const std::uint64_t around = installed ? limits_.installed_context : limits_.context;
    for (const std::uint64_t line : wanted) {
      if (line > lines.size()) continue;
      const std::uint64_t last = std::min<std::uint64_t>(line + around, lines.size());
      for (std::uint64_t n = line > around ? line - around : 1; n <= last; ++n)
        if (!keep(path, file, n, lines[static_cast<std::size_t>(n - 1)], writer)) state = SourceState::limit;
    }
  }
  if (file.state == SourceState::limit && state == SourceState::kept) state = SourceState::limit;
  if (file.written && file.state == state) return;
  if (!file.written) file.written_us = written_us;
  file.written = true;
  file.state = state;
  writer.source_file({writer.string(path), state, file.written_us});
}

// False: the trace has reached its limit on text.
bool SourceCapture::keep(const std::string& path, File& file, std::uint64_t number, std::string_view text,
                         trace::Writer& writer) {
  if (file.kept.contains(number)) return true;
  const std::string_view shown = cut(text, limits_.line_bytes);
  const bool installed = support::is_installed_python(path);
  constexpr std::uint64_t kRow = 8;  // what a line costs without its text
  const std::uint64_t cost = shown.size() + kRow;
  if (text_bytes_ + cost > limits_.text_bytes) return false;
  if (installed && installed_text_bytes_ + cost > limits_.installed_text_bytes) return false;
  text_bytes_ += cost;
  if (installed) installed_text_bytes_ += cost;
  file.kept.insert(number);
  writer.source_line({writer.string(path), number, writer.string(shown)});
  return true;
}

}  // namespace vramscope::collect
