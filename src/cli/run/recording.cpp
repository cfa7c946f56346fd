#include "cli/run/recording.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "analyze/xla_dump.h"
#include "cli/run/leftover.h"
#include "cli/run/native_symbols.h"
#include "cli/run/preload.h"
#include "collect/order/merger.h"
#include "collect/sample/tick_clock.h"
#include "collect/spool/spool_folder.h"
#include "collect/spool/spool_place.h"
#include "spool/layout.h"

namespace vramscope::cli {

namespace {

constexpr const char* kRuns = "vramscope-runs";
constexpr const char* kLatest = "latest";
constexpr std::uint64_t kSmallSpool = std::uint64_t{4} << 20;
constexpr std::size_t kSmallWindow = std::size_t{1} << 14;
constexpr std::size_t kLargestWindow = std::size_t{1} << 20;

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

// What users call the run: the script rather than the interpreter.
std::string run_name(const std::vector<std::string>& command) {
  if (fs::path(command[0]).filename().string().starts_with("python"))
    for (std::size_t i = 1; i < command.size(); ++i) {
      if (command[i] == "-m" && i + 1 < command.size()) return safe_name(command[i + 1]);
      if (command[i] == "-c") break;
      if (!command[i].starts_with('-')) return safe_name(fs::path(command[i]).stem().string());
    }
  return safe_name(command[0]);
}

// The name of a run folder. Whatever else "latest" points to is somebody's own link.
bool is_run_name(const std::string& name) {
  static const std::string kPattern = "0000-00-00T00-00-00-";
  if (name.size() <= kPattern.size() || name.contains('/')) return false;
  return std::ranges::equal(kPattern, name.substr(0, kPattern.size()), [](char wanted, char found) {
    return wanted == '0' ? found >= '0' && found <= '9' : found == wanted;
  });
}

struct Output {
  fs::path folder;
  fs::path latest, latest_before;  // the link that was made, and where it pointed before; empty: none
};

Result<Output> make_output(const std::string& chosen, const std::vector<std::string>& command) {
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
    return fail(fmt::format("not recording: {}: cannot write to this folder: {}; choose another one with -o",
                            folder.empty() ? "vramscope-runs" : folder.string(), error ? error.message() : strerror(errno)));
  Output out{.folder = fs::absolute(folder, error).lexically_normal(), .latest = {}, .latest_before = {}};
  if (fresh) {
    // "latest" is a convenience: a race between two runs may leave either.
    const fs::path link = out.folder.parent_path() / kLatest;
    const fs::file_status status = fs::symlink_status(link, error);
    const fs::path before = fs::is_symlink(status) ? fs::read_symlink(link, error) : fs::path{};
    if (!fs::exists(status) || is_run_name(before)) {
      if (!before.empty()) unlink(link.c_str());
      fs::create_directory_symlink(out.folder.filename(), link, error);
      if (!error) {
        out.latest = link;
        out.latest_before = before;
      }
    }
  }
  return out;
}

// "latest" points to the ongoing run, and after that to the last one with a trace.
void put_latest_back(const Recording& recording) {
  const fs::path& folder = recording.collect.output;
  const fs::path& link = recording.latest;
  std::error_code error;
  if (link.empty() || fs::read_symlink(link, error) != folder.filename() || error) return;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".vram") return;
  unlink(link.c_str());
  if (!recording.latest_before.empty()) fs::create_directory_symlink(recording.latest_before, link, error);
}

// Events that one interrupted thread may hold back. In a container, their memory is taken from the program's: at most an eighth
// of it.
std::size_t merge_window(std::uint64_t room) {
  return std::clamp<std::uint64_t>(std::bit_floor(room / 8 / sizeof(collect::Event)), kSmallWindow, kLargestWindow);
}

// Before the existing ones, but only once.
std::string prepended(const char* variable, const std::string& entry) {
  const char* before = getenv(variable);
  if (before == nullptr || *before == '\0') return entry;
  const std::string all = std::string(":") + before + ":";
  return all.find(":" + entry + ":") != std::string::npos ? before : entry + ":" + before;
}

// XLA writes much more than its plans, all of it named module_*. Newer versions split the plans into three files, and have the
// source lines in the module's text.
bool is_surplus_of_xla(std::string_view name) {
  constexpr std::string_view kPlans[] = {"buffer-assignment.txt", "buffer-assignment-values.txt", "live-range.txt",
                                         "_after_optimizations.txt"};
  return name.starts_with("module_") && std::ranges::none_of(kPlans, [&](std::string_view end) { return name.ends_with(end); });
}

// XLA splits its flags at spaces, and ignores everything after the first word that is not a flag.
std::string xla_value(const std::string& path) {
  if (path.find_first_of(" \t\n\"'\\") == std::string::npos) return path;
  std::string quoted = "\"";
  for (const char c : path) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return quoted + "\"";
}

// What the command has asked XLA for stays as it is. Empty: nothing stands in the way.
std::string_view why_no_plans(std::string_view flags) {
  const std::size_t begin = flags.find_first_not_of(" \t\n");
  if (begin != std::string_view::npos && flags[begin] != '-') return "XLA_FLAGS names a file, to which nothing can be added";
  if (flags.find("--xla_dump_to") != std::string_view::npos) return "XLA_FLAGS already contains --xla_dump_to";
  return {};
}

// A separate folder for each run: one named xla may be the user's.
void plan_xla(Recording& recording) {
  const char* flags = std::getenv("XLA_FLAGS");
  const auto without = [](std::string_view why) { fmt::print(stderr, "vramscope: cannot keep XLA's plans: {}\n", why); };
  if (const std::string_view why = why_no_plans(flags != nullptr ? flags : ""); !why.empty()) return without(why);
  auto folder = support::OwnedFolder::create(recording.collect.output, kXlaPrefix, 0777);
  if (!folder) return without(folder.error().message);
  recording.environment["XLA_FLAGS"] = fmt::format("{}{}--xla_dump_to={} --xla_dump_hlo_as_text", flags != nullptr ? flags : "",
                                                   flags != nullptr ? " " : "", xla_value(folder->path().string()));
  recording.collect.settings[std::string(analyze::kXlaPlans)] = folder->path().filename().string();
  recording.xla_plans = std::move(*folder);
}

// An empty folder has no plans.
void keep_xla_plans(const support::OwnedFolder& folder) { folder.remove(is_surplus_of_xla); }

Result<fs::path> library_to_preload() {
  fs::path library = find_inject_library();
  if (library.empty() && program_folder().empty())
    return fail("not recording: /proc is not mounted; as root, run 'mount -t proc proc /proc'");
  if (library.empty())
    return fail("not recording: libvramscope_inject.so is not next to the program; run 'make build' or reinstall");
  // A path with a space or colon cannot be preloaded.
  if (library.string().find_first_of(" :") != std::string::npos)
    return fail(
        fmt::format("not recording: {}: the path contains a space or a colon, which the dynamic loader does not accept; "
                    "install to another folder",
                    library.string()));
  return library;
}

}  // namespace

std::string safe_name(const std::string& word) {
  std::string name = fs::path(word).filename().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-'; }, '_');
  return name.empty() || name[0] == '.' ? "run" : name.substr(0, 40);
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
  const auto found = library_to_preload();
  if (!found) return std::unexpected(found.error());
  const fs::path& library = *found;
  auto output = make_output(options.output, command);
  if (!output) return std::unexpected(output.error());
  const std::uint64_t spool_limit = options.small && options.spool_limit == 0 ? kSmallSpool : options.spool_limit;
  auto spool = collect::make_spool_folder(spool_limit, collect::spool_candidates());
  if (!spool) return fail("not recording: " + spool.error().message);

  Recording recording{.collect = {},
                      .spool = std::move(spool->folder),
                      .xla_plans = {},
                      .environment = {},
                      .spool_link = {},
                      .latest = output->latest,
                      .latest_before = output->latest_before};
  recording.collect.output = output->folder;
  recording.collect.spool_folder = recording.spool.path();
  recording.collect.host = host_name();
  recording.collect.command = command;
  recording.collect.spool_limit = spool->limit;
  recording.collect.trace_limit = options.trace_limit;
  recording.collect.sample_hz = options.sample_hz;
  recording.collect.merge_events = options.small ? kSmallWindow : merge_window(collect::cgroup_room());
  recording.collect.keep_sources = options.source;
  if (options.anonymize) {
    recording.collect.anonymize = trace::random_key();
    recording.collect.host = fmt::format("host-{:06x}", (*recording.collect.anonymize)[0] & 0xffffff);
  }
  recording.collect.native_symbol = native_symbols();

  if (options.xla) plan_xla(recording);
  auto link = leave_for_recovery(recording.collect);
  if (!link) {
    clean_up(recording);
    return fail(fmt::format("not recording: {}; choose another folder with -o", link.error().message));
  }
  recording.spool_link = *link;
  recording.environment["LD_PRELOAD"] = preload_with(getenv("LD_PRELOAD"), library.string());
  recording.environment["ASAN_OPTIONS"] = asan_options_with(getenv("ASAN_OPTIONS"));
  recording.environment[spool::kEnvSpool] = recording.spool.path().string();
  recording.environment[spool::kEnvSpoolLimit] = fmt::format("{}", spool->limit);
  recording.environment[spool::kEnvSpoolLeaves] = fmt::format("{}", spool->leaves);
  recording.environment[spool::kEnvClock] = collect::preferred_clock();
  recording.environment[spool::kEnvOptions] = fmt::format("stacks={},unwind={}", options.stacks, options.unwind);
  recording.environment["VRAMSCOPE_INJECT"] = library.string();
  // Empty: do not inherit that of an outer run.
  recording.environment["VRAMSCOPE_SOURCE_ROOT"] =
      options.source_root.empty() ? "" : fs::absolute(options.source_root).lexically_normal().string();
  // Two ways in: an interpreter that hides its own symbols uses the first one, one that ignores PYTHONPATH the second.
  const fs::path startup = options.python ? find_python_startup() : fs::path{};
  if (!startup.empty()) recording.environment["PYTHONPATH"] = prepended("PYTHONPATH", startup.string());
  recording.environment[spool::kEnvStartup] = startup.string();  // empty: do not inherit that of an outer run either
  recording.environment["VRAMSCOPE_HOST"] = options.host;        // for the Python side
  return recording;
}

void clean_up(const Recording& recording) {
  if (recording.xla_plans) keep_xla_plans(*recording.xla_plans);
  recording.spool.remove(collect::is_spool_file);
  support::remove_own_link(recording.spool_link);
  put_latest_back(recording);
}

}  // namespace vramscope::cli
