#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "analyze/losses.h"
#include "analyze/summary.h"
#include "cli/launch.h"
#include "cli/live_page.h"
#include "cli/recording.h"
#include "cli/summary_text.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "collect/collector.h"
#include "collect/losses.h"
#include "collect/proc.h"
#include "spool/layout.h"

namespace vramscope::cli {

namespace {

// How long recorded processes may outlive the command before their recording is ended.
constexpr std::uint64_t kGraceUs = 2'000'000;
// Addresses are reserved for all of it.
constexpr std::uint64_t kLargestSpool = std::uint64_t{1} << 40;

void say(const std::string& text) {
  // One write: lines of the program and ours do not mix within a line.
  [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, text.data(), text.size());
}

class RunVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.text("-o,--output", options_.output, "folder for the traces (default: vramscope-runs/<time>-<name>)", "DIR");
    arguments.size("--spool-limit", options_.spool_limit, "memory for events on their way, per process (default: up to 256MiB)");
    arguments.size("--trace-limit", options_.trace_limit, "size of a trace; beyond it detail is thinned, totals are kept");
    arguments.number("--sample-hz", options_.sample_hz,
                     "how often the device and the host are looked at (default: 10; 0: never)");
    arguments.choice("--stacks", options_.stacks, {"python", "native", "both", "none"},
                     "call stacks of allocations (default: python)");
    arguments.choice("--unwind", options_.unwind, {"frames", "tables"},
                     "native stacks by frame pointers, fast, or by unwind tables, whole (default: frames)");
    arguments.flag("--no-python", no_python_, "no start-up hook in Python: no steps, layers and names of variables");
    arguments.flag("--xla", options_.xla, "XLA's plans are kept: 'vramscope xla' then opens up its temporary blocks");
    arguments.flag("--anonymize", options_.anonymize, "names and paths are hashed in the trace");
    arguments.flag("--live", live_, "a page in the browser that follows the run; its address is printed");
    arguments.count("--live-port", live_port_, "port of that page (default: a free one)");
    arguments.flag("-q,--quiet", quiet_, "no summary at the end");
    arguments.command(command_, "the program to record, with its arguments");
  }

  Result<int> run() override {
    if (command_.empty()) return fail("no command to run; write it after --, as in 'vramscope run -- python train.py'");
    if (options_.spool_limit > kLargestSpool) return fail("--spool-limit takes at most 1 TiB");
    if (live_port_ > 65535) return fail("--live-port takes a number up to 65535");
    if (!(options_.sample_hz >= 0 && options_.sample_hz <= 1000)) return fail("--sample-hz takes a number from 0 to 1000");
    options_.python = !no_python_;
    const auto file = find_command(command_[0]);
    if (!file) {
      say(fmt::format("vramscope: {}\n", file.error().message));
      return file.error().code;
    }
    survive_file_size_limit();
    auto recording = prepare(options_, command_);
    if (!recording) {
      say(fmt::format("vramscope: {}\n", recording.error().message));
      const int reason = become(*file, command_);
      return reason == ENOENT ? 127 : 126;
    }
    return record(*file, *recording);
  }

 private:
  Result<int> record(const std::string& file, Recording& recording) {
    recording.collect.say = [this](const std::string& text) { tell(text); };
    std::optional<collect::Collector> collector(recording.collect);
    auto launch = Launch::start(file, command_, recording.environment);
    if (!launch) {
      clean_up(recording);
      say(fmt::format("vramscope: {}\n", launch.error().message));
      return 126;
    }
    collector->child_started(launch->child());
    {
      auto page = open_page(recording);
      while (!launch->wait(collector->poll())) continue;
      collector->child_ended(launch->status());
      collector->finish(kGraceUs);
      if (page) page->ended();
    }
    if (options_.xla) keep_xla_plans(recording.collect.output);
    report(*collector);
    collector.reset();
    clean_up(recording);
    launch->die_alike();
  }

  // Opened after the command was started: a fork would copy the server's threads. A page that cannot be opened is no reason to
  // stop recording.
  std::optional<LivePage> open_page(const Recording& recording) const {
    if (!live_) return std::nullopt;
    auto page = LivePage::start(recording.collect.output, static_cast<std::uint16_t>(live_port_));
    if (!page) {
      say(fmt::format("vramscope: no live page: {}\n", page.error().message));
      return std::nullopt;
    }
    say(fmt::format("vramscope: live at {}\n", page->address()));
    return std::move(*page);
  }

  void tell(const std::string& text) { say(text); }

  void report(const collect::Collector& collector) const {
    const auto& traces = collector.traces();
    for (const auto& trace : traces)
      for (const auto& [kind, count] : trace.losses)
        if (collect::is_loss(kind))
          say(fmt::format("vramscope: process {}: {}\n", trace.pid, collect::describe_loss(kind, count)));
    if (quiet_) return;
    const std::string folder = collector.options().output.string();
    if (traces.empty()) {
      say(fmt::format("vramscope: {}\n", why_nothing(collector.options())));
      return;
    }
    std::string text;
    std::error_code ignored;
    for (const auto& trace : traces) {
      auto summary = analyze::summarize(trace.path.string());
      if (!summary && trace.bytes > 0)
        text += std::filesystem::exists(trace.path, ignored)
                    ? fmt::format("vramscope: {}\n", summary.error().message)
                    : fmt::format("vramscope: the trace {} was removed while it was written\n", trace.path.string());
      if (!summary) continue;  // never begun: its losses have been told
      // On a full disk the file could not tell of all its losses.
      std::uint64_t lost = 0;
      for (const auto& [kind, count] : trace.losses) lost += analyze::are_missing(kind) ? count : 0;
      summary->lost_events = std::max(summary->lost_events, lost);
      const bool nothing = summary->pools.empty() && summary->driver.allocs == 0;
      text += fmt::format("vramscope: {}{}\n", summary_sentence(*summary), nothing ? host_pool_hint() : "");
    }
    const auto written = static_cast<std::size_t>(std::count_if(
        traces.begin(), traces.end(), [&](const auto& trace) { return std::filesystem::exists(trace.path, ignored); }));
    const auto where = traces.size() == 1 ? traces[0].path.string() : folder;
    if (written > 0)
      text += fmt::format("vramscope: {} in {}\n", written == 1 ? "trace" : fmt::format("{} traces", written), where);
    say(text);
  }

  static std::string why_nothing(const collect::CollectOptions& options) {
    const auto running = collect::proc::with_variable(fmt::format("{}={}", spool::kEnvSpool, options.spool_folder.string()));
    if (!running.empty())
      return fmt::format(
          "no process used recorded memory before the command ended: no trace. Process {}, which it started, still runs and is "
          "not recorded; let the command wait for it.",
          running[0]);
    return fmt::format("no process used recorded memory: no trace. 'vramscope doctor' says what can be recorded.{}",
                       host_pool_hint());
  }

  // The usual reason why a training shows nothing.
  static std::string host_pool_hint() {
    if (std::getenv(kHostPoolVariable) != nullptr) return "";
    return fmt::format(" TensorFlow without a GPU is recorded with {}=1.", kHostPoolVariable);
  }

  RecordingOptions options_;
  std::vector<std::string> command_;
  bool no_python_ = false;
  bool quiet_ = false;
  bool live_ = false;
  std::uint64_t live_port_ = 0;
};

const Register kVerb{{.name = "run",
                      .group = Group::record,
                      .help = "run a command and record its memory",
                      .examples = "  vramscope run -- python train.py --epochs 3\n"
                                  "  vramscope run -o runs/big --trace-limit 512MiB -- torchrun --nproc-per-node 2 train.py\n"
                                  "  vramscope run --no-python -- ./cuda_program\n",
                      .make = make<RunVerb>}};

}  // namespace

}  // namespace vramscope::cli
