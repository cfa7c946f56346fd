#include "analyze/source_status.h"

#include <fmt/format.h>

#include "support/plain_file.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using trace::SourceState;

std::string largest() { return support::format_size(support::kLargestSourceFile); }

std::string setting_of(const Overview& overview, std::string_view key) {
  for (const auto& [name, value] : overview.settings)
    if (name == key) return value;
  return {};
}

}  // namespace

std::string why_no_text(const KeptSource& kept, const Overview& overview) {
  if (kept.state) switch (*kept.state) {
      case SourceState::missing:
        return "The file did not exist when its lines were recorded: a notebook cell, or code generated at run time.";
      case SourceState::not_source:
        return fmt::format("The recording did not store this file: it is not a regular Python source file of at most {}.",
                           largest());
      case SourceState::withheld:
        return "The recording did not store this file: it belongs to another user and is not readable by everyone.";
      case SourceState::limit:
        return "The recording did not store this file: the trace had reached its limit on source code.";
      case SourceState::kept:
      case SourceState::changed:
        break;
    }
  const std::string kept_how = setting_of(overview, "vramscope.source");
  constexpr std::string_view kLeftOutBy = "left out by ";
  if (kept_how.starts_with(kLeftOutBy))
    return fmt::format("No source code was stored: this run was recorded with {}.", kept_how.substr(kLeftOutBy.size()));
  return "The trace does not contain this file.";
}

std::string_view about_kept(SourceState state) {
  if (state == SourceState::changed) return "The file was written after the process started: its lines may have moved.";
  if (state == SourceState::limit) return "Some lines are missing: the trace had reached its limit on source code.";
  return {};
}

std::string nor_in_folder(std::string_view why, std::string_view folder) {
  return fmt::format("{} There is no such file under {} either.", why, folder);
}

std::string not_shown_from(std::string_view folder) {
  return fmt::format("The file under {} is not shown: it is a link, not a regular file, larger than {}, or not readable.", folder,
                     largest());
}

std::string different_in(std::string_view folder) {
  return fmt::format("The file under {} is a different version; the recorded lines are shown.", folder);
}

}  // namespace vramscope::analyze
