#include "cli/run_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/ranks.h"

namespace vramscope::cli {

Result<std::vector<std::filesystem::path>> traces_of(const std::filesystem::path& place) {
  std::error_code error;
  const auto status = std::filesystem::status(place, error);
  if (!std::filesystem::exists(status)) return fail(fmt::format("{}: no such file or folder", place.string()));
  if (!std::filesystem::is_directory(status)) return of_chosen_rank({place});
  std::vector<std::filesystem::path> traces;
  for (const auto& entry : std::filesystem::directory_iterator(place, error))
    if (entry.path().extension() == ".vram") traces.push_back(entry.path());
  if (error) return fail(fmt::format("{}: {}", place.string(), error.message()));
  if (traces.empty())
    return fail(fmt::format("{}: no trace in this folder; record one with 'vramscope run -o {} -- command'", place.string(),
                            place.string()));
  std::sort(traces.begin(), traces.end());
  return of_chosen_rank(std::move(traces));
}

Result<std::vector<std::string>> places_of(std::vector<std::string> places) {
  if (!rank_is_chosen()) return places;
  std::vector<std::string> chosen;
  for (const std::string& place : places) {
    const auto traces = traces_of(place);
    if (!traces) return std::unexpected(traces.error());
    for (const auto& trace : *traces) chosen.push_back(trace.string());
  }
  return chosen;
}

}  // namespace vramscope::cli
