// Folders that this program creates for its own files, and the only way in which it deletes.
//
// Names come from folders that other users may write to, where a link may point anywhere. So nothing is deleted through a path
// from a directory listing. A folder counts as ours only if we own it, it is not a link, and it contains our marker; it is then
// held by its descriptor, and files are deleted one by one, by name, relative to that descriptor.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::support {

// 13 random letters and digits: a name that is unique and cannot be predicted.
std::string random_name();

// Opens a regular file of our own user. Links are not followed, pipes do not block, devices and files of other users are
// rejected. `flags`: O_RDONLY or O_RDWR; with O_CREAT a new file is created, mode 0600. Returns -1 and sets errno like open(2);
// EPERM: not a regular file of ours.
int open_own_file(const std::filesystem::path& path, int flags);
// The same for reading files that may belong to anyone.
int open_regular_file(const std::filesystem::path& path);
int open_regular_file(int folder, const std::string& name);
// Opens a folder that may belong to anyone, for reading; a link in its place is not followed. Returns -1 and sets errno.
int open_real_folder(const std::filesystem::path& path);
// Names of what is in it, in no order; their types must be queried through the descriptor.
std::vector<std::string> names_in(int folder);

class OwnedFolder {
 public:
  static constexpr const char* kMarker = ".vramscope-folder";
  using IsOurs = std::function<bool(std::string_view name)>;

  // A new folder in `where`, named `prefix` plus random characters.
  static Result<OwnedFolder> create(const std::filesystem::path& where, std::string_view prefix, unsigned mode = 0700);
  // One for what is not kept, where the system has its temporary files.
  static Result<OwnedFolder> create_temporary(std::string_view prefix);
  // One that create() made for this user, closed to all others.
  static Result<OwnedFolder> open(const std::filesystem::path& path);
  OwnedFolder(OwnedFolder&& other) noexcept;
  OwnedFolder& operator=(OwnedFolder&& other) noexcept;
  ~OwnedFolder();

  const std::filesystem::path& path() const { return path_; }
  // Deletes regular files and links of this user directly in the folder whose names `is_ours` accepts.
  void remove_files(const IsOurs& is_ours) const;
  // The same, then the marker and the folder, if nothing else is in it. False: something was kept.
  bool remove(const IsOurs& is_ours) const;

 private:
  OwnedFolder(int folder, std::filesystem::path path) : folder_(folder), path_(std::move(path)) {}

  int folder_ = -1;
  std::filesystem::path path_;
};

// Deletes one link, if it is a link and ours.
void remove_own_link(const std::filesystem::path& link);

}  // namespace vramscope::support
