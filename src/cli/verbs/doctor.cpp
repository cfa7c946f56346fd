#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include <algorithm>

#include "cli/elf_exports.h"
#include "cli/python_probe.h"
#include "cli/run/recording.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"
#include "collect/sample/nvml.h"
#include "collect/sample/proc.h"
#include "collect/sample/tick_clock.h"
#include "collect/spool/spool_folder.h"
#include "collect/spool/spool_place.h"
#include "support/json_writer.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

namespace fs = std::filesystem;

enum class State { ok, absent, problem };

constexpr const char* word(State state) { return state == State::ok ? "ok" : state == State::absent ? "–" : "problem"; }

struct Finding {
  std::string what;
  State state = State::ok;
  std::string detail;
  std::string remedy;              // empty: nothing to do
  std::vector<std::string> hooks;  // that would bind
};

// Names of ours that the framework's library defines as well: these the loader gives to us.
std::vector<std::string> shared_names(const std::set<std::string>& ours, const std::set<std::string>& theirs,
                                      std::string_view prefix) {
  std::vector<std::string> both;
  for (const std::string& name : ours)
    if (name.starts_with(prefix) && theirs.contains(name)) both.push_back(name);
  return both;
}

bool any_contains(const std::vector<std::string>& names, std::string_view part) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

fs::path find_library(const fs::path& folder, std::string_view begin) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(begin)) return entry.path();
  return {};
}

// A package without an allocator of its own is only named.
Finding check_package(const PackageFound& found, const std::set<std::string>& ours) {
  const analyze::Package& package = found.package;
  Finding finding{std::string(package.name), State::ok, found.version + std::string(package.remark), "", {}};
  if (package.library.empty()) return finding;
  finding.state = State::problem;
  const std::string tested = package.tested.empty() ? "" : fmt::format("{} are known to work", package.tested);
  const fs::path library = found.folder / package.library;
  const auto exports = elf_exports(find_library(library.parent_path(), library.filename().string()));
  if (!exports) {
    finding.detail += fmt::format(", whose {} cannot be read", library.filename().string());
    finding.remedy = tested.empty() ? "install it again" : tested;
    return finding;
  }
  finding.hooks = shared_names(ours, *exports, package.symbols);
  const auto is_hooked = [&](std::string_view part) { return any_contains(finding.hooks, part); };
  if (!std::ranges::all_of(package.needs, is_hooked)) {
    finding.detail += ", whose allocator cannot be reached from outside";
    finding.remedy =
        fmt::format("its pools are not recorded, but driver allocations are{}{}", tested.empty() ? "" : "; ", tested);
    return finding;
  }
  const bool ordered = std::ranges::any_of(package.orders_events, is_hooked);
  finding.state = State::ok;
  finding.detail +=
      fmt::format(", {} hooks would bind{}", finding.hooks.size(), ordered ? ", order inside the allocator's lock" : "");
  if (!ordered && !package.orders_events.empty()) finding.remedy = "peaks of multithreaded runs are shown as \"at least\"";
  return finding;
}

std::string names_of_frameworks() {
  std::vector<std::string_view> names;
  for (const analyze::Framework* framework : analyze::frameworks()) names.push_back(framework->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Finding check_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr)
    return {"CUDA driver",
            State::absent,
            "libcuda.so.1 was not found",
            "frameworks are recorded on the host; to use a GPU, install the NVIDIA driver",
            {}};
  using Version = int (*)(int*);
  const auto ask = reinterpret_cast<Version>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  if (ask == nullptr || ask(&version) != 0)
    return {"CUDA driver",
            State::problem,
            "libcuda.so.1 does not respond",
            "reload the driver, or start the container with the GPU",
            {}};
  return {"CUDA driver", State::ok, fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10), "", {}};
}

Finding check_nvml() {
  const collect::Nvml nvml;
  if (!nvml.problem().empty())
    return {"NVML",
            State::absent,
            nvml.problem(),
            "device and per-process memory is not recorded; libnvidia-ml.so.1 comes with the driver",
            {}};
  std::string devices;
  for (std::size_t i = 0; i < nvml.devices(); ++i) {
    collect::DeviceMemory memory;
    nvml.memory(i, memory);
    devices += fmt::format(", GPU {}: {} with {}", i, nvml.name(i), support::format_size(memory.total));
  }
  Finding finding{"NVML", State::ok, fmt::format("driver {}{}", nvml.driver_version(), devices), "", {}};
  if (!collect::proc::in_initial_pid_namespace())
    finding.remedy =
        "NVML cannot identify processes inside this container if several share a GPU (start the container with --pid=host "
        "to fix this)";
  return finding;
}

Finding check_spool() {
  auto place = collect::make_spool_folder(0, collect::spool_candidates());
  if (!place) return {"spool", State::problem, place.error().message, "nothing can be recorded without a local folder", {}};
  place->folder.remove(collect::is_spool_file);
  const fs::path where = place->folder.path().parent_path();
  Finding finding{
      "spool", State::ok, fmt::format("{}, {} per process", where.string(), support::format_size(place->limit)), "", {}};
  if (where != "/dev/shm")
    finding.remedy = "/dev/shm is too small or missing: recording uses a disk instead (Docker: use --shm-size 1g)";
  return finding;
}

// Measured in a container of 256 MiB (docs/design/collector.md); tests/recording/test_memory_cost.py holds us to it.
Finding check_memory() {
  constexpr std::uint64_t kSmallContainer = std::uint64_t{1} << 30;
  Finding finding{"memory", State::ok, "recording takes 10 to 25 MiB per busy process, or 8 to 15 MiB with --small", "", {}};
  const std::uint64_t room = collect::cgroup_room();
  if (room < kSmallContainer)
    finding.remedy = fmt::format("this container has {} left: record with --small", support::format_size(room));
  return finding;
}

Finding check_clock() {
  const bool tsc = std::string_view(collect::preferred_clock()) == "tsc";
  return {"clock",
          State::ok,
          tsc ? "time-stamp counter" : "monotonic clock",
          tsc ? "" : "each event costs about 20 ns more than with the time-stamp counter",
          {}};
}

class DoctorVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.text("--python", python_, "Python interpreter to check (default: python3 on PATH)", "FILE");
    arguments.flag("--json", json_, "print JSON");
    arguments.flag("-v,--verbose", verbose_, "list every hook");
  }

  Result<int> run() override {
    examine();
    json_ ? print_json() : print_text();
    return can_record_ ? 0 : 1;
  }

 private:
  void examine() {
    const fs::path library = find_inject_library();
    std::set<std::string> ours;
    if (library.empty()) {
      add({"library", State::problem, "libvramscope_inject.so is not next to the program", "run 'make build', or reinstall", {}});
      can_record_ = false;
    } else {
      if (auto exports = elf_exports(library)) ours = std::move(*exports);
      add({"library", State::ok, library.string(), "", {}});
    }
    add(check_spool());
    can_record_ = can_record_ && findings_.back().state == State::ok;
    add(check_memory());
    add(check_clock());
    add(check_driver());
    has_gpu_ = findings_.back().state == State::ok;
    add(check_nvml());
    examine_python(ours);
  }

  void examine_python(const std::set<std::string>& ours) {
    const auto python = probe_python(python_);
    if (!python) {
      add({"Python", State::absent, python.error().message, "name one with --python, or activate its environment first", {}});
      return;
    }
    const fs::path startup = find_python_startup();
    add({"Python",
         State::ok,
         fmt::format("{} at {}", python->version, python->executable),
         startup.empty() ? "the start-up hook is missing: no steps, layers or variable names" : "",
         {}});
    for (const PackageFound& found : python->packages) {
      Finding finding = check_package(found, ours);
      const std::string variable(found.package.host_pool_variable);
      if (!variable.empty() && !has_gpu_ && std::getenv(variable.c_str()) == nullptr)
        finding.remedy += fmt::format("{}without a GPU it uses malloc, which is not recorded; set {}=1 to use a pool",
                                      finding.remedy.empty() ? "" : "; ", variable);
      if (!found.package.library.empty() && finding.state == State::ok)
        recordable_.push_back(fmt::format("{} {}", finding.what, found.version));
      add(std::move(finding));
    }
    found_ = !python->packages.empty();
    if (!found_)
      add({"frameworks",
           State::absent,
           fmt::format("none of {} in this Python", names_of_frameworks()),
           "activate the environment of your training script, or name its interpreter with --python",
           {}});
  }

  void add(Finding finding) { findings_.push_back(std::move(finding)); }

  std::string sentence() const {
    if (!can_record_) return "Nothing can be recorded here yet.";
    std::string what = fmt::format("{}", fmt::join(recordable_, " and "));
    if (what.empty())
      what = has_gpu_
                 ? "Programs that use CUDA"
                 : fmt::format("No framework was found{}; other programs", found_ ? " that can be recorded without a GPU" : "");
    return fmt::format("{} can be recorded{}.", what,
                       has_gpu_ ? ", on the GPU and on the host" : ", on the host; there is no GPU driver");
  }

  void print_text() const {
    const bool colour = wants_colour(stdout);
    fmt::print("{}\n\n", bold(printable(sentence()), colour));
    for (const Finding& finding : findings_) {
      fmt::print("  {:<12} {:<8} {}\n", finding.what, word(finding.state), printable(finding.detail));
      if (!finding.remedy.empty()) fmt::print("  {:<12} {:<8} {}\n", "", "", dim("→ " + printable(finding.remedy), colour));
      if (verbose_)
        for (const std::string& hook : finding.hooks) fmt::print("  {:<12} {:<8} {}\n", "", "", dim(printable(hook), colour));
    }
  }

  void print_json() const {
    support::JsonWriter json;
    json.begin_object().member("vramscope", VRAMSCOPE_VERSION).member("can_record", can_record_).key("findings").begin_array();
    for (const Finding& finding : findings_) {
      json.begin_object()
          .member("what", finding.what)
          .member("state", finding.state == State::absent ? "absent" : word(finding.state));
      json.member("detail", finding.detail).member("remedy", finding.remedy).key("hooks").begin_array();
      for (const std::string& hook : finding.hooks) json.value(hook);
      json.end_array().end_object();
    }
    json.end_array().end_object();
    fmt::print("{}\n", json.text());
  }

  std::string python_;
  bool json_ = false;
  bool verbose_ = false;
  bool can_record_ = true;
  bool has_gpu_ = false;
  std::vector<std::string> recordable_;
  bool found_ = false;  // a framework, whether it can be recorded here or not
  std::vector<Finding> findings_;
};

const Register kVerb{{.name = "doctor",
                      .group = Group::other,
                      .help = "check what can be recorded on this machine, and how to fix the rest",
                      .examples = "  vramscope doctor\n"
                                  "  vramscope doctor --python .venv/bin/python --verbose\n",
                      .make = make<DoctorVerb>}};

}  // namespace

}  // namespace vramscope::cli
