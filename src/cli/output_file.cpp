#include "cli/output_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "analyze/api.h"
#include "support/file.h"

namespace vramscope::cli {

Status not_an_input(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    const auto files = analyze::traces_in(input);
    if (!files) continue;  // reading it reports what is wrong with it
    for (const auto& file : *files) {
      std::error_code error;
      if (std::filesystem::equivalent(file, output, error))
        return fail(fmt::format("{}: is {} and would be overwritten; choose another output file", output,
                                file.string() == output ? "an input" : "the same file as " + file.string()));
    }
  }
  return {};
}

namespace {

// A file of this process by its number: the kernel resolves these links. It may be a regular file, which must not be replaced.
bool is_open_already(const std::string& output) {
  for (const char* place : {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"})
    if (output.starts_with(place)) return true;
  return false;
}

// A terminal, a pipe or another device: written as it is. Not somebody else's pipe: a neighbor may have put it there to read what
// is written.
bool is_stream(const struct stat& info) { return S_ISCHR(info.st_mode) || (S_ISFIFO(info.st_mode) && info.st_uid == geteuid()); }

bool is_stream(const std::string& output) {
  struct stat info{};
  return is_open_already(output) || (lstat(output.c_str(), &info) == 0 && is_stream(info));
}

Status write_stream(const std::string& output, std::string_view text) {
  const auto error = [&] {
    return fail(fmt::format("{}: cannot write: {}; choose another output file", output, std::strerror(errno)));
  };
  const bool by_name = !is_open_already(output);
  const int file = open(output.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (by_name ? O_NOFOLLOW : 0));
  if (file < 0) return error();
  // Where others can write, the name may lead to a file of the user by now.
  if (struct stat info{}; by_name && (fstat(file, &info) != 0 || !is_stream(info))) {
    close(file);
    return fail(fmt::format("{}: changed while it was opened; choose another output file", output));
  }
  while (!text.empty()) {
    const ssize_t wrote = write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      auto status = error();
      close(file);
      return status;
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  close(file);
  return {};
}

}  // namespace

Status write_output(const std::string& output, std::string_view text) {
  if (is_stream(output)) return write_stream(output, text);
  const Status status = support::replace_file(output, text);
  if (!status) return fail(fmt::format("{}; choose another output file", status.error().message));
  return {};
}

}  // namespace vramscope::cli
