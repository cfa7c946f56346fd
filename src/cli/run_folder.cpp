#include "cli/run_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/ranks.h"

namespace vramscope::cli {

Result<std::vector<std::filesystem::path>> traces_of(const std::filesystem::path& place) {
  std::error_code error;
  const auto status = std::filesystem::status(place, error);
  if (!std::filesystem::exists(status)) return fail(fmt::format("{}: no such file or folder", place.string()));
  if (!std::filesystem::is_directory(status)) return std::vector{place};
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

}  // namespace vramscope::cli
