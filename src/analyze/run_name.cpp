#include "analyze/run_name.h"

namespace vramscope::analyze {

std::string run_name(const std::filesystem::path& file_or_folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(file_or_folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "runs/"
  return path.filename().string();
}

}  // namespace vramscope::analyze
