#include "collect/sample/proc.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <sstream>

namespace vramscope::collect::proc {

namespace {

// Fields of /proc/<pid>/stat after the command, which may itself contain spaces and brackets: [0] is the state.
std::vector<std::string> stat_fields(Pid pid) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(text.substr(end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char buffer[16384];
  for (ssize_t got; (got = read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  close(file);
  return text;
}

std::optional<std::uint64_t> start_ticks(Pid pid) {
  constexpr std::size_t kStartTime = 19;
  const auto fields = stat_fields(pid);
  if (fields.size() <= kStartTime) return std::nullopt;
  return number(fields[kStartTime]);
}

bool is_dead(Pid pid) {
  const auto fields = stat_fields(pid);
  return fields.empty() || fields[0] == "Z" || fields[0] == "X";
}

bool is_exiting(Pid pid) {
  constexpr std::size_t kFlags = 6;
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING
  const auto fields = stat_fields(pid);
  return fields.size() <= kFlags || fields[0] == "Z" || fields[0] == "X" || (number(fields[kFlags]) & kExiting) != 0;
}

bool has_thread(Pid pid, std::uint32_t tid) { return access(fmt::format("/proc/{}/task/{}", pid, tid).c_str(), F_OK) == 0; }

std::string thread_name(Pid pid, std::uint32_t tid) {
  std::string name = read_file(fmt::format("/proc/{}/task/{}/comm", pid, tid));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool maps_file(Pid pid, std::string_view path_end) {
  const std::string maps = read_file(fmt::format("/proc/{}/maps", pid));
  for (std::size_t at = maps.find(path_end); at != std::string::npos; at = maps.find(path_end, at + 1)) {
    const std::string_view rest = std::string_view(maps).substr(at + path_end.size());
    if (rest.starts_with('\n') || rest.starts_with(" (deleted)\n")) return true;
  }
  return false;
}

std::vector<Pid> with_variable(std::string_view variable) {
  const std::string needle = fmt::format("{}{}{}", '\0', variable, '\0');
  std::vector<Pid> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = static_cast<Pid>(number(entry.path().filename().string()));
    if (pid == 0 || is_dead(pid)) continue;
    const std::string environment = '\0' + read_file(fmt::format("/proc/{}/environ", pid));
    if (environment.find(needle) != std::string::npos) found.push_back(pid);
  }
  return found;
}

std::uint64_t resident_bytes(Pid pid) {
  std::istringstream statm(read_file(fmt::format("/proc/{}/statm", pid)));
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::vector<Pid> namespace_pids(Pid pid) {
  const std::string status = read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return {pid};
  const std::size_t begin = at + sizeof("\nNSpid:") - 1;
  std::istringstream line(status.substr(begin, status.find('\n', begin) - begin));
  std::vector<Pid> pids;
  for (Pid each; line >> each;) pids.push_back(each);
  return pids;
}

bool in_initial_pid_namespace() {
  constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO, fixed in the kernel's interface
  struct stat info{};
  return stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == kInitialPidNamespace;
}

}  // namespace vramscope::collect::proc
