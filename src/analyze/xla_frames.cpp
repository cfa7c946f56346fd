#include "analyze/xla_frames.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace vramscope::analyze {
namespace {

constexpr std::array<std::string_view, 4> kSections = {"FileNames", "FunctionNames", "FileLocations", "StackFrames"};
enum Section { kFiles = 0, kLocations = 2, kFrames = 3 };
constexpr int kDeepest = 200;  // frames of a stack; a damaged table may go round in a circle

std::uint64_t number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  std::uint64_t value = 0;
  if (at != std::string_view::npos)
    std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);  // 0 if it is not a number
  return value;
}

}  // namespace

bool XlaFrames::is_past(std::string_view line) { return line.starts_with('%') || line.starts_with("ENTRY "); }

XlaFrames::XlaFrames(std::string_view text, const CodeFolders& folders) {
  int section = -1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_past(line)) break;
    if (const auto* named = std::ranges::find(kSections, line); named != kSections.end())
      section = static_cast<int>(named - kSections.begin());
    else
      take(line, section, folders);
  }
  // The text numbers parents from 1 in one version and from 2 in another. The first frame has none.
  const auto first = frames_.find(1);
  const std::uint64_t none = first == frames_.end() ? 0 : first->second.parent;
  for (auto& [id, frame] : frames_) frame.parent -= std::min(frame.parent, none);
}

void XlaFrames::take(std::string_view line, int section, const CodeFolders& folders) {
  const std::uint64_t id = number_after(line, "");
  if (id == 0) return;
  if (section == kFiles) {
    const std::size_t from = line.find('"'), to = line.rfind('"');
    if (from >= to || to == std::string_view::npos) return;
    const std::string_view path = line.substr(from + 1, to - from - 1);
    files_[id] = {.path = std::string(path), .is_library = folders.is_library(path)};
  } else if (section == kLocations) {
    locations_[id] = {number_after(line, "file_name_id="), number_after(line, " line=")};
  } else if (section == kFrames) {
    frames_[id] = {number_after(line, "file_location_id="), number_after(line, "parent_frame_id=")};
  }
}

std::string XlaFrames::line_of(std::uint64_t frame) const {
  const File* innermost = nullptr;
  std::uint64_t line = 0;
  for (int depth = 0; frame != 0 && depth < kDeepest; ++depth) {
    const auto here = frames_.find(frame);
    if (here == frames_.end()) break;
    frame = here->second.parent;
    const auto location = locations_.find(here->second.location);
    if (location == locations_.end()) continue;
    const auto file = files_.find(location->second.file);
    if (file == files_.end()) continue;
    if (!file->second.is_library) return short_line(file->second.path, location->second.line);
    if (innermost != nullptr) continue;
    innermost = &file->second;
    line = location->second.line;
  }
  return innermost != nullptr ? short_line(innermost->path, line) : std::string();
}

}  // namespace vramscope::analyze
