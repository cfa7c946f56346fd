#include "collect/write/own_note.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "support/owned_folder.h"

namespace vramscope::collect {

void write_own_note(const std::filesystem::path& note, const std::string& name) {
  const int file = support::open_own_file(note, O_RDWR | O_CREAT);
  if (file < 0) return;
  // Truncated only once it is known to be ours.
  const bool written = ftruncate(file, 0) == 0 && write(file, name.data(), name.size()) == static_cast<ssize_t>(name.size());
  if (!written) unlink(note.c_str());
  close(file);
}

std::string read_own_note(const std::filesystem::path& note) {
  const int file = support::open_own_file(note, O_RDONLY);
  if (file < 0) return {};
  std::array<char, 1024> text{};  // longer than any file name
  const ssize_t got = read(file, text.data(), text.size());
  close(file);
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

}  // namespace vramscope::collect
