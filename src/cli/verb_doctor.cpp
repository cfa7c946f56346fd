#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include <algorithm>

#include "cli/elf_exports.h"
#include "cli/python_probe.h"
#include "cli/recording.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "collect/nvml.h"
#include "collect/proc.h"
#include "collect/spool_place.h"
#include "collect/tick_clock.h"
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

Finding check_tensorflow(const FrameworkFound& found, const std::set<std::string>& ours) {
  Finding finding{"TensorFlow", State::problem, found.version, "", {}};
  const fs::path library = find_library(found.folder, "libtensorflow_framework.so");
  const auto exports = elf_exports(library);
  if (!exports) {
    finding.detail += ", whose libtensorflow_framework.so cannot be read";
    finding.remedy = "versions 2.15 to 2.21 from pip are known to work";
    return finding;
  }
  finding.hooks = shared_names(ours, *exports, "_ZN3tsl");
  const bool both = any_contains(finding.hooks, "AllocateRaw") && any_contains(finding.hooks, "DeallocateRaw");
  const bool ordered = any_contains(finding.hooks, "AddTraceMe") || any_contains(finding.hooks, "FindChunkPtr");
  if (!both) {
    finding.detail += ", whose allocator cannot be reached from outside";
    finding.remedy = "its pools are not recorded, the driver level is; versions 2.15 to 2.21 from pip are known to work";
    return finding;
  }
  finding.state = State::ok;
  finding.detail +=
      fmt::format(", {} hooks would bind{}", finding.hooks.size(), ordered ? ", order inside the allocator's lock" : "");
  if (!ordered) finding.remedy = "peaks of several threads are shown as \"at least\"";
  return finding;
}

Finding check_torch(const FrameworkFound& found, const std::set<std::string>& ours) {
  Finding finding{"PyTorch", State::problem, found.version, "", {}};
  const auto exports = elf_exports(found.folder / "lib/libc10.so");
  if (exports) finding.hooks = shared_names(ours, *exports, "_ZN3c10");
  if (any_contains(finding.hooks, "reportMemoryUsageToProfiler")) {
    finding.state = State::ok;
    finding.detail += fmt::format(", {} hooks would bind", finding.hooks.size());
  } else {
    finding.detail += ", whose allocator report cannot be reached from outside";
    finding.remedy = "its pools are not recorded, the driver level is";
  }
  return finding;
}

Finding check_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr)
    return {"CUDA driver",
            State::absent,
            "libcuda.so.1 was not found",
            "frameworks are recorded on the host; for a GPU install NVIDIA's driver",
            {}};
  using Version = int (*)(int*);
  const auto ask = reinterpret_cast<Version>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  if (ask == nullptr || ask(&version) != 0)
    return {"CUDA driver",
            State::problem,
            "libcuda.so.1 does not answer",
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
            "device and per-process figures are not recorded; libnvidia-ml.so.1 comes with the driver",
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
        "in this container NVML's process ids mean nothing: with several processes on a GPU none can be identified (--pid=host "
        "mends it)";
  return finding;
}

Finding check_spool() {
  auto place = collect::make_spool_folder(0, collect::spool_candidates());
  if (!place) return {"spool", State::problem, place.error().message, "nothing can be recorded without a local folder", {}};
  std::error_code error;
  fs::remove(place->folder, error);
  const fs::path where = place->folder.parent_path();
  Finding finding{
      "spool", State::ok, fmt::format("{}, {} for each process", where.string(), support::format_size(place->limit)), "", {}};
  if (where != "/dev/shm")
    finding.remedy = "/dev/shm is too small or absent: recording goes through a disk (docker: --shm-size 1g)";
  return finding;
}

Finding check_clock() {
  const bool tsc = std::string_view(collect::preferred_clock()) == "tsc";
  return {"clock",
          State::ok,
          tsc ? "time-stamp counter" : "monotonic clock",
          tsc ? "" : "an event costs some 20 ns more than with the time-stamp counter",
          {}};
}

class DoctorVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.text("--python", python_, "the interpreter to look into (default: python3 of PATH)", "FILE");
    arguments.flag("--json", json_, "for programs");
    arguments.flag("-v,--verbose", verbose_, "name every hook");
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
      add({"library",
           State::problem,
           "libvramscope_inject.so is not beside the program",
           "build it with 'make build', or install again",
           {}});
      can_record_ = false;
    } else {
      if (auto exports = elf_exports(library)) ours = std::move(*exports);
      add({"library", State::ok, library.string(), "", {}});
    }
    add(check_spool());
    can_record_ = can_record_ && findings_.back().state == State::ok;
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
         startup.empty() ? "the start-up hook is missing: no steps, layers and names of variables" : "",
         {}});
    for (const FrameworkFound& found : python->frameworks) {
      if (found.name == "tensorflow") {
        add(check_tensorflow(found, ours));
        if (!has_gpu_ && std::getenv(kHostPoolVariable) == nullptr)
          findings_.back().remedy += fmt::format("{}without a GPU it uses malloc, which is not recorded; with {}=1 it has a pool",
                                                 findings_.back().remedy.empty() ? "" : "; ", kHostPoolVariable);
      }
      if (found.name == "torch") add(check_torch(found, ours));
      if (found.name == "keras") add({"Keras", State::ok, found.version, "", {}});
      if (found.name == "jax") add({"JAX", State::ok, found.version + ", through the driver level", "", {}});
      const bool pools = found.name == "tensorflow" || found.name == "torch";
      if (pools && findings_.back().state == State::ok)
        recordable_.push_back(fmt::format("{} {}", findings_.back().what, found.version));
    }
    if (python->frameworks.empty())
      add({"frameworks",
           State::absent,
           "no TensorFlow, PyTorch or JAX in this Python",
           "activate the environment of the training, or name its interpreter with --python",
           {}});
  }

  void add(Finding finding) { findings_.push_back(std::move(finding)); }

  std::string sentence() const {
    if (!can_record_) return "Nothing can be recorded here yet.";
    std::string what = fmt::format("{}", fmt::join(recordable_, " and "));
    if (what.empty()) what = has_gpu_ ? "Programs that use CUDA" : "No framework was found; other programs";
    return fmt::format("{} can be recorded{}.", what,
                       has_gpu_ ? ", on the GPU and on the host" : ", on the host; there is no GPU driver");
  }

  void print_text() const {
    const bool colour = wants_colour(stdout);
    fmt::print("{}\n\n", bold(sentence(), colour));
    for (const Finding& finding : findings_) {
      fmt::print("  {:<12} {:<8} {}\n", finding.what, word(finding.state), printable(finding.detail));
      if (!finding.remedy.empty()) fmt::print("  {:<12} {:<8} {}\n", "", "", dim("→ " + finding.remedy, colour));
      if (verbose_)
        for (const std::string& hook : finding.hooks) fmt::print("  {:<12} {:<8} {}\n", "", "", dim(hook, colour));
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
  std::vector<Finding> findings_;
};

const Register kVerb{{.name = "doctor",
                      .group = Group::other,
                      .help = "what can be recorded on this machine, and what to do about the rest",
                      .examples = "  vramscope doctor\n"
                                  "  vramscope doctor --python .venv/bin/python --verbose\n",
                      .make = make<DoctorVerb>}};

}  // namespace

}  // namespace vramscope::cli
