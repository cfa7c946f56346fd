#include "cli/foreign.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cli/run/memory_limit.h"
#include "importers/importer.h"
#include "support/owned_folder.h"

namespace vramscope::cli {

namespace {

// Removed with all that is in it when the program exits.
class TemporaryTraces {
 public:
  ~TemporaryTraces() {
    if (folder_) folder_->remove([](std::string_view) { return true; });
  }

  Result<std::filesystem::path> import(const std::filesystem::path& file) {
    if (const auto known = traces_.find(file); known != traces_.end()) return known->second;
    if (!folder_) {
      auto created = support::OwnedFolder::create_temporary("vramscope-import-");
      if (!created) return std::unexpected(created.error());
      folder_.emplace(std::move(*created));
    }
    // Files of different folders may have one name, and a name may be as long as the file system allows.
    std::string name = file.filename().string().substr(0, kLongestName);
    if (!names_.insert(name).second) name += "-" + std::to_string(traces_.size() + 1);
    const std::filesystem::path trace = folder_->path() / (name + ".vram");
    if (Status status = importers::import_file(file, trace); !status) return std::unexpected(status.error());
    return traces_[file] = trace;
  }

 private:
  std::optional<support::OwnedFolder> folder_;
  static constexpr std::size_t kLongestName = 200;

  std::map<std::filesystem::path, std::filesystem::path> traces_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::filesystem::path> as_trace(const std::filesystem::path& file) {
  static TemporaryTraces traces;
  if (importers::looks_of(file) == importers::Looks::ours) return file;
  limit_memory(std::array{file});
  if (const auto opened = importers::open_profile(file); !opened) return std::unexpected(opened.error());
  return traces.import(file);
}

}  // namespace vramscope::cli
