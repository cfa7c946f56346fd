#include "cli/recording.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "cli/native_symbols.h"
#include "collect/spool_place.h"
#include "collect/tick_clock.h"
#include "spool/layout.h"

namespace vramscope::cli {

namespace {

constexpr const char* kRuns = "vramscope-runs";
constexpr const char* kLatest = "latest";

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path{} : program.parent_path();
}

fs::path first_existing(const std::vector<fs::path>& candidates) {
  std::error_code error;
  for (const fs::path& each : candidates)
    if (fs::exists(each, error)) return fs::weakly_canonical(each, error);
  return {};
}

std::string safe_name(const std::string& word) {
  std::string name = fs::path(word).filename().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-'; }, '_');
  return name.empty() || name[0] == '.' ? "run" : name.substr(0, 40);
}

// What people call the run: the script rather than the interpreter.
std::string run_name(const std::vector<std::string>& command) {
  if (fs::path(command[0]).filename().string().starts_with("python"))
    for (std::size_t i = 1; i < command.size(); ++i) {
      if (command[i] == "-m" && i + 1 < command.size()) return safe_name(command[i + 1]);
      if (command[i] == "-c") break;
      if (!command[i].starts_with("-")) return safe_name(fs::path(command[i]).stem().string());
    }
  return safe_name(command[0]);
}

Result<fs::path> make_output(const std::string& chosen, const std::vector<std::string>& command) {
  std::error_code error;
  fs::path folder = chosen;
  const bool fresh = chosen.empty();
  if (fresh) {
    const std::time_t now = std::time(nullptr);
    const std::string stem = fmt::format("{:%Y-%m-%dT%H-%M-%S}-{}", fmt::localtime(now), run_name(command));
    const fs::path all = kRuns;
    fs::create_directories(all, error);
    for (int n = 1; n < 1000 && !error; ++n) {
      folder = all / (n == 1 ? stem : fmt::format("{}-{}", stem, n));
      if (fs::create_directory(folder, error)) break;
    }
  } else {
    fs::create_directories(folder, error);
  }
  if (error || !fs::is_directory(folder) || access(folder.c_str(), W_OK | X_OK) != 0)
    return fail(fmt::format("nothing is recorded: the folder {} cannot be written ({}); choose another with -o",
                            folder.empty() ? "vramscope-runs" : folder.string(), error ? error.message() : strerror(errno)));
  folder = fs::absolute(folder, error).lexically_normal();
  if (fresh) {
    // "latest" is a convenience: a race between two runs may leave either.
    const fs::path link = folder.parent_path() / kLatest;
    if (!fs::exists(fs::symlink_status(link, error)) || fs::is_symlink(fs::symlink_status(link, error))) {
      fs::remove(link, error);
      fs::create_directory_symlink(folder.filename(), link, error);
    }
  }
  return folder;
}

// "latest" leads to the run that is going on, and after it to the last one with a trace.
void put_latest_back(const Recording& recording) {
  const fs::path& folder = recording.collect.output;
  const fs::path link = folder.parent_path() / kLatest;
  std::error_code error;
  if (fs::read_symlink(link, error) != folder.filename() || error) return;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".vram") return;
  fs::remove(link, error);
  if (!recording.latest_before.empty()) fs::create_directory_symlink(recording.latest_before, link, error);
}

// In front of what is there already; a second time is once too many.
std::string prepended(const char* variable, const std::string& entry) {
  const char* before = getenv(variable);
  if (before == nullptr || *before == '\0') return entry;
  const std::string all = std::string(":") + before + ":";
  return all.find(":" + entry + ":") != std::string::npos ? before : entry + ":" + before;
}

}  // namespace

namespace {

constexpr const char* kOptionsName = "options";

void store_options(const collect::CollectOptions& options) {
  std::ofstream file(options.spool_folder / kOptionsName);
  file << "host " << options.host << "\ntrace_limit " << options.trace_limit << "\nspool_limit " << options.spool_limit
       << "\nsample_hz " << options.sample_hz << "\n";
  // Beside the names themselves, in a folder that nobody else can read and that goes with the run.
  if (options.anonymize) file << "anonymize " << (*options.anonymize)[0] << " " << (*options.anonymize)[1] << "\n";
  std::error_code ignored;
  fs::create_directory_symlink(options.output, options.spool_folder / kRunLink, ignored);
}

}  // namespace

collect::CollectOptions stored_options(const fs::path& spool_folder) {
  collect::CollectOptions options;
  options.host = host_name();
  options.native_symbol = native_symbols();
  std::ifstream file(spool_folder / kOptionsName);
  for (std::string key; file >> key;) {
    if (key == "host") file >> options.host;
    if (key == "trace_limit") file >> options.trace_limit;
    if (key == "spool_limit") file >> options.spool_limit;
    if (trace::AnonymousKey hash_key; key == "anonymize" && file >> hash_key[0] >> hash_key[1]) options.anonymize = hash_key;
    if (key == "sample_hz") file >> options.sample_hz;
  }
  return options;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const std::string safe = safe_name(name);
  return safe.empty() ? "localhost" : safe;
}

fs::path find_inject_library() {
  if (const char* chosen = getenv("VRAMSCOPE_INJECT"); chosen != nullptr && *chosen != '\0') return first_existing({chosen});
  const fs::path here = program_folder();
  constexpr const char* kName = "libvramscope_inject.so";
  return first_existing({here / kName, here / "../lib" / kName, here / "../lib/vramscope" / kName});
}

fs::path find_python_startup() {
  const fs::path here = program_folder();
  return first_existing(
      {here / "../_startup", here / "../python/vramscope/_startup", here / "../lib/vramscope/python/vramscope/_startup"});
}

Result<Recording> prepare(const RecordingOptions& options, const std::vector<std::string>& command) {
  const fs::path library = find_inject_library();
  if (library.empty() && program_folder().empty())
    return fail("nothing is recorded: /proc is not mounted; mount it, as root with 'mount -t proc proc /proc'");
  if (library.empty())
    return fail(
        "nothing is recorded: libvramscope_inject.so is not beside the program; build it with 'make build' or install again");
  // A path with a space or colon cannot be preloaded.
  if (library.string().find_first_of(" :") != std::string::npos)
    return fail(
        fmt::format("nothing is recorded: {} has a space or colon in its path, which the loader cannot take; install elsewhere",
                    library.string()));
  std::error_code none;
  const fs::path latest_before = fs::read_symlink(fs::path(kRuns) / kLatest, none);
  auto output = make_output(options.output, command);
  if (!output) return std::unexpected(output.error());
  auto spool = collect::make_spool_folder(options.spool_limit, collect::spool_candidates());
  if (!spool) return fail("nothing is recorded: " + spool.error().message);

  Recording recording;
  recording.collect.output = *output;
  recording.latest_before = latest_before;
  recording.collect.spool_folder = spool->folder;
  recording.collect.host = host_name();
  recording.collect.command = command;
  recording.collect.spool_limit = spool->limit;
  recording.collect.trace_limit = options.trace_limit;
  recording.collect.sample_hz = options.sample_hz;
  if (options.anonymize) {
    recording.collect.anonymize = trace::random_key();
    recording.collect.host = fmt::format("host-{:06x}", (*recording.collect.anonymize)[0] & 0xffffff);
  }
  recording.collect.native_symbol = native_symbols();

  std::error_code error;
  recording.spool_link = *output / fmt::format(".spool-{}-{}", recording.collect.host, getpid());
  fs::remove(recording.spool_link, error);
  fs::create_directory_symlink(spool->folder, recording.spool_link, error);
  if (error) {
    fs::remove_all(spool->folder, error);
    return fail(fmt::format("nothing is recorded: the folder {} cannot be written; choose another with -o", output->string()));
  }
  store_options(recording.collect);
  fs::create_directory_symlink(fs::absolute(*output, error), spool->folder / "run", error);  // for `top`; nothing depends on it
  recording.environment["LD_PRELOAD"] = prepended("LD_PRELOAD", library.string());
  recording.environment[spool::kEnvSpool] = spool->folder.string();
  recording.environment[spool::kEnvSpoolLimit] = fmt::format("{}", spool->limit);
  recording.environment[spool::kEnvClock] = collect::preferred_clock();
  recording.environment[spool::kEnvOptions] = fmt::format("stacks={},unwind={}", options.stacks, options.unwind);
  recording.environment["VRAMSCOPE_INJECT"] = library.string();
  if (const fs::path startup = options.python ? find_python_startup() : fs::path{}; !startup.empty())
    recording.environment["PYTHONPATH"] = prepended("PYTHONPATH", startup.string());
  if (options.xla) {
    const char* flags = std::getenv("XLA_FLAGS");
    recording.environment["XLA_FLAGS"] =
        fmt::format("{}{}--xla_dump_to={} --xla_dump_hlo_as_text", flags != nullptr ? flags : "", flags != nullptr ? " " : "",
                    (fs::absolute(*output, error) / kXlaFolder).string());
  }
  return recording;
}

void keep_xla_plans(const fs::path& output) {
  std::error_code ignored;
  std::vector<fs::path> others;
  for (auto it = fs::directory_iterator(output / kXlaFolder, ignored); !ignored && it != fs::directory_iterator();
       it.increment(ignored))
    if (!it->path().filename().string().ends_with("buffer-assignment.txt")) others.push_back(it->path());
  for (const fs::path& path : others) fs::remove(path, ignored);
}

void clean_up(const Recording& recording) {
  std::error_code ignored;
  fs::remove_all(recording.collect.spool_folder, ignored);
  fs::remove(recording.spool_link, ignored);
  put_latest_back(recording);
}

}  // namespace vramscope::cli
