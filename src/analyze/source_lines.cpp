#include "analyze/source_lines.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "analyze/gen/texts.h"
#include "analyze/query/instant_text.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

struct FileLine {
  std::string file;
  std::uint64_t number = 0;
};

// "path/train.py:13"
std::optional<FileLine> parse_line(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  FileLine out{std::string(text.substr(0, colon)), 0};
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), out.number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

struct LineSum {
  SourceLine line;
  Bytes largest = 0;  // of its categories
};
using Sums = std::map<std::string, std::map<std::uint64_t, LineSum>>;

Sums sums_of(const Live& by_line_and_category) {
  Sums out;
  for (const Group& group : by_line_and_category.groups) {
    const auto at = parse_line(group.keys[0]);
    if (!at) continue;
    auto& [line, largest] = out[at->file][at->number];
    line.line = at->number;
    line.bytes += group.bytes;
    line.blocks += group.count;
    if (group.bytes < largest) continue;
    largest = group.bytes;
    line.category = group.keys[1];
  }
  return out;
}

std::string sentence_of(const std::vector<SourceFile>& files, Bytes total, std::string_view when) {
  std::string where;
  Bytes most = 0;
  for (const SourceFile& file : files)
    for (const SourceLine& line : file.lines)
      if (line.bytes > most) {
        most = line.bytes;
        where = fmt::format("{}:{}", file.path, line.line);
      }
  if (where.empty()) return std::string(kNoLine);
  return line_holds_most(where, format_size(most), format_size(total), when.empty() ? kAtThisInstant : when);
}

}  // namespace

Result<SourceLines> source_lines(const Engine& engine, std::string_view at, std::string_view where) {
  const auto found =
      engine.live({.at = std::string(at), .by = {By::line, By::category}, .where = std::string(where), .limit = 0});
  if (!found) return std::unexpected(found.error());
  SourceLines out;
  out.at = found->at;
  out.time_us = found->time_us;
  Bytes known = 0;
  for (const auto& [path, lines] : sums_of(*found)) {
    SourceFile& file = out.files.emplace_back(path);
    for (const auto& [number, sum] : lines) {
      file.lines.push_back(sum.line);
      file.bytes += sum.line.bytes;
    }
    known += file.bytes;
  }
  out.sentence = sentence_of(out.files, found->total, instant_words(engine, at));
  out.note =
      source_caption(seconds_text(out.time_us), support::format_plural(out.files.size(), "file", "files"), format_size(known));
  std::ranges::stable_sort(out.files, std::greater{}, &SourceFile::bytes);
  return out;
}

}  // namespace vramscope::analyze
