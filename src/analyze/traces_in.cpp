#include <algorithm>

#include <fmt/format.h>

#include "analyze/api.h"

namespace vramscope::analyze {

Result<std::vector<std::filesystem::path>> traces_in(const std::filesystem::path& file_or_folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(file_or_folder, error)) return fail(fmt::format("{}: no such file or folder", file_or_folder.string()));
  if (!fs::is_directory(file_or_folder, error)) return std::vector{file_or_folder};
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(file_or_folder, error))
    if (entry.path().extension() == ".vram") out.push_back(entry.path());
  if (error) return fail(fmt::format("{}: {}", file_or_folder.string(), error.message()));
  if (out.empty())
    return fail(
        fmt::format("{0}: no trace in this folder; record one with 'vramscope run -o {0} -- COMMAND'", file_or_folder.string()));
  std::ranges::sort(out);
  return out;
}

}  // namespace vramscope::analyze
