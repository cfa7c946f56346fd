#include "serve/source_text.h"

#include <algorithm>

#include "analyze/source_lines.h"
#include "analyze/source_status.h"

namespace vramscope::serve {

namespace {

using trace::SourceState;

// 2000. A profile of another tool may count from an instant of its own, which is in 1970: it says nothing about when files were
// written.
constexpr std::uint64_t kEarliestStart = 946'684'800'000'000;

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  while (!text.empty() && lines.size() < analyze::kMostSourceLines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({.line = lines.size() + 1, .text = std::string(line)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The folder may be the program's own, a copy of it on another machine, or a part of either: the longest match wins.
support::PlainResult read_below(const support::SourceRoot& root, std::string_view path) {
  if (const std::string own = root.path().string() + "/"; path.starts_with(own))
    if (auto found = root.read(path.substr(own.size()), support::kLargestSourceFile)) return found;
  support::PlainResult last = std::unexpected(support::PlainFault::missing);
  while (!path.empty()) {
    auto found = root.read(path, support::kLargestSourceFile);
    if (found) return found;
    if (found.error() != support::PlainFault::missing) last = std::move(found);
    const std::size_t slash = path.find('/', 1);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  }
  return last;
}

// What was recorded is what ran: a file with other contents is a different version.
bool agrees(const std::vector<TextLine>& lines, const analyze::KeptSource& kept) {
  return std::ranges::all_of(kept.lines, [&](const auto& line) {
    return line.first - 1 < lines.size() && lines[static_cast<std::size_t>(line.first - 1)].text.starts_with(line.second);
  });
}

}  // namespace

void fill_source_text(SourceText& out, const analyze::Engine& engine, const analyze::Overview& overview,
                      const support::SourceRoot* root) {
  const analyze::KeptSource kept = engine.source(out.path);
  out.path = kept.path;
  for (const auto& [line, text] : kept.lines) out.text.push_back({.line = line, .text = text});
  if (!out.text.empty()) out.status = analyze::about_kept(kept.state.value_or(SourceState::kept));
  if (root == nullptr) {
    if (out.text.empty()) {
      out.status = analyze::why_no_text(kept, overview);
      out.remedy = analyze::kGiveSourceRoot;
    }
    return;
  }
  const std::string folder = root->path().string();
  const support::PlainResult found = read_below(*root, kept.path);
  if (!found) {
    if (out.text.empty())
      out.status = found.error() == support::PlainFault::missing
                       ? analyze::nor_in_folder(analyze::why_no_text(kept, overview), folder)
                       : analyze::not_shown_from(folder);
    return;
  }
  std::vector<TextLine> lines = lines_of(found->bytes);
  if (!agrees(lines, kept)) {
    out.status = analyze::different_in(folder);
    return;
  }
  const bool newer =
      kept.lines.empty() && overview.start_realtime_us > kEarliestStart && found->written_us > overview.start_realtime_us;
  out.text = std::move(lines);
  out.status = newer ? analyze::kChangedSince : std::string_view();
}

}  // namespace vramscope::serve
