#include "cli/python_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "cli/python_script.h"
#include "cli/run/launch.h"

namespace vramscope::cli {

namespace {

// find_spec looks for the folder only; the version stands in the package's metadata. Arguments: module, a comma, its
// distributions.
constexpr const char* kScript = R"(
import importlib.util
try:
    from importlib import metadata
except ImportError:
    metadata = None
print("python", sys.version.split()[0], sys.executable, sep="\t")
for package in sys.argv[1:]:
    name, *distributions = package.split(",")
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        continue
    version = "?"
    for distribution in distributions:
        try:
            version = metadata.version(distribution)
            break
        except Exception:
            pass
    print(name, version, list(spec.submodule_search_locations)[0], sep="\t")
)";

std::vector<const analyze::Package*> all_packages() {
  std::vector<const analyze::Package*> all;
  for (const analyze::Framework* framework : analyze::frameworks())
    for (const analyze::Package& package : framework->packages) all.push_back(&package);
  return all;
}

Result<std::string> output_of(const std::string& file, const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail("pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    const int nothing = open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDERR_FILENO})
      if (nothing >= 0) dup2(nothing, stream);
    become(file, command);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fail(fmt::format("{}: does not list its packages", file));
  return text;
}

}  // namespace

Result<PythonFound> probe_python(const std::string& interpreter) {
  std::string file;
  for (const std::string& name : interpreter.empty() ? std::vector<std::string>{"python3", "python"} : std::vector{interpreter})
    if (const auto found = find_command(name); found && file.empty()) file = *found;
  if (file.empty()) return fail(interpreter.empty() ? "no python3 on PATH" : fmt::format("{}: no such interpreter", interpreter));
  const auto packages = all_packages();
  std::vector<std::string> command = {file, "-c", python_script(kScript)};
  for (const analyze::Package* package : packages)
    command.push_back(fmt::format("{},{}", package->module, fmt::join(package->distributions, ",")));
  const auto text = output_of(file, command);
  if (!text) return std::unexpected(text.error());
  PythonFound python;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    std::string version;
    std::string place;
    std::getline(fields, name, '\t');
    std::getline(fields, version, '\t');
    std::getline(fields, place);
    if (name == "python") {
      python.version = version;
      python.executable = place;
    } else if (const auto found = std::ranges::find(packages, name, &analyze::Package::module); found != packages.end()) {
      python.packages.push_back({**found, version, place});
    }
  }
  return python;
}

}  // namespace vramscope::cli
