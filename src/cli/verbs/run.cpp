#include <fmt/format.h>

#include <string.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "analyze/api.h"
#include "analyze/framework.h"
#include "analyze/index/losses.h"
#include "cli/metrics_server.h"
#include "cli/otlp_push.h"
#include "cli/run/launch.h"
#include "cli/run/live_page.h"
#include "cli/run/recording.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"
#include "collect/collector.h"
#include "collect/sample/proc.h"
#include "collect/write/losses.h"
#include "serve/run_server.h"
#include "spool/layout.h"

namespace vramscope::cli {

namespace {

// How long recorded processes may outlive the command before their recording is ended.
constexpr std::uint64_t kGraceUs = 2'000'000;
constexpr std::uint64_t kUnrecordedPauseUs = 1'000'000;
// Addresses are reserved for all of it.
constexpr std::uint64_t kLargestSpool = std::uint64_t{1} << 40;

void say(const std::string& text) {
  // One write: lines of the program and ours do not mix within a line.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

class RunVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.text("-o,--output", options_.output, "output folder for the traces (default: vramscope-runs/<time>-<name>)", "DIR");
    arguments.size("--spool-limit", options_.spool_limit, "memory for events in transit, per process (default: up to 256MiB)");
    arguments.size("--trace-limit", options_.trace_limit,
                   "maximum trace size; beyond it, detail is thinned out and totals are kept");
    arguments.number("--sample-hz", options_.sample_hz,
                     "sampling rate of device and host memory, per second (default: 10; 0 = off)");
    arguments.choice("--stacks", options_.stacks, {"python", "native", "both", "none"},
                     "call stacks to record with allocations (default: python)");
    arguments.choice("--unwind", options_.unwind, {"frames", "tables"},
                     "how to walk native stacks: frame pointers (fast) or unwind tables (complete) (default: frames)");
    arguments.choice(
        "--host", options_.host, {"process", "python"},
        "host memory to record: of the process, or also by line of Python, which slows Python down (default: process)");
    arguments.flag("--small", options_.small,
                   "use little memory, for small containers (default spool: 4MiB); bursts may lose detail");
    arguments.flag("--no-python", no_python_, "install no hooks in Python: no steps, layers or variable names");
    arguments.flag("--xla", options_.xla, "keep XLA's buffer plans, for 'vramscope xla'");
    arguments.flag("--anonymize", options_.anonymize, "hash names and paths in the trace");
    arguments.flag("--no-source", no_source_, "store no source code in the trace");
    arguments.text("--source-root", options_.source_root,
                   "treat Python files in this folder as yours, even where packages are installed", "DIR");
    arguments.flag("--live", live_, "serve a page that follows the run, and print its address");
    arguments.count("--live-port", live_port_, "port of the live page (default: any free port)");
    arguments.text("--metrics", metrics_, "serve metrics for Prometheus at this address, such as :9400, while the command runs",
                   "ADDRESS");
    arguments.text("--otlp", otlp_, kOtlpHelp, "URL");
    arguments.flag("-q,--quiet", quiet_, "print no summary at the end");
    arguments.command(command_, "command to record, with its arguments");
  }

  Result<int> run() override {
    if (command_.empty()) return fail("no command given; put it after --, as in 'vramscope run -- python train.py'");
    if (options_.spool_limit > kLargestSpool) return fail("--spool-limit must be at most 1 TiB");
    if (const Status ok = serve::check_port("--live-port", live_port_); !ok) return std::unexpected(ok.error());
    if (!metrics_.empty())
      if (const auto address = parse_metrics_address(metrics_); !address) return std::unexpected(address.error());
    if (!otlp_.empty())
      if (const auto address = parse_otlp_address(otlp_); !address) return std::unexpected(address.error());
    if (!(options_.sample_hz >= 0 && options_.sample_hz <= 1000)) return fail("--sample-hz must be from 0 to 1000");
    if (std::error_code error; !options_.source_root.empty() && !std::filesystem::is_directory(options_.source_root, error))
      return fail(fmt::format("--source-root: {}: not a folder; pass the one with your own source files", options_.source_root));
    options_.python = !no_python_;
    options_.source = !no_source_;
    const auto file = find_command(command_[0]);
    if (!file) {
      say(fmt::format("vramscope: {}\n", file.error().message));
      return file.error().code;
    }
    survive_file_size_limit();
    auto recording = prepare(options_, command_);
    if (!recording) {
      say(fmt::format("vramscope: {}\n", recording.error().message));
      return run_alone(*file);
    }
    return record(*file, *recording);
  }

 private:
  Result<int> record(const std::string& file, Recording& recording) {
    recording.collect.say = [this](const std::string& text) { tell(text); };
    std::optional<collect::Collector> collector(recording.collect);
    auto launch = Launch::start(file, command_, recording.environment);
    if (!launch) {
      collector.reset();
      clean_up(recording);
      if (launch.error().may_run_alone) {
        say(fmt::format("vramscope: not recording: {}\n", launch.error().message));
        return run_alone(file);
      }
      say(fmt::format("vramscope: {}\n", launch.error().message));
      return 126;
    }
    collector->child_started(launch->child());
    if (collect_until_the_end(*collector, *launch, recording)) {
      attempt("no summary", [&] { report(*collector); });
      collector.reset();
      clean_up(recording);
    }
    launch->die_alike();
  }

  // The command is the user's work, the recording is not: whatever goes wrong here, the command runs to its end and its exit code
  // is passed on. True: the traces are finished.
  bool collect_until_the_end(collect::Collector& collector, Launch& launch, const Recording& recording) {
    std::optional<LivePage> page;
    attempt("no live page", [&] { page = open_page(recording); });
    std::unique_ptr<MetricsServer> metrics;
    attempt("no metrics", [&] { metrics = serve_metrics(); });
    std::unique_ptr<OtlpPush> push;
    attempt("no metrics", [&] { push = push_metrics(); });
    bool works = true;
    std::uint64_t pause_us = 0;
    do {
      works = works && attempt("the recording ends here", [&] { pause_us = collector.poll(); });
      if (!works) pause_us = kUnrecordedPauseUs;
    } while (!launch.wait(pause_us));
    works = works && attempt("the traces are not finished", [&] {
              collector.child_ended(launch.status());
              collector.finish(kGraceUs);
            });
    if (page) attempt("the live page ended", [&] { page->ended(); });
    if (!works) say(fmt::format("vramscope: 'vramscope recover {}' finishes the traces\n", recording.collect.output.string()));
    return works;
  }

  template <typename Body>
  static bool attempt(const char* otherwise, Body body) {
    try {
      body();
      return true;
    } catch (const std::exception& error) {  // no memory, no thread, no descriptor
      say(fmt::format("vramscope: {}: {}\n", otherwise, error.what()));
      return false;
    }
  }

  // Without us in between. Returns only where the command cannot be run at all.
  int run_alone(const std::string& file) const {
    const int reason = become(file, command_);
    say(fmt::format("vramscope: {}: {}\n", file, strerror(reason)));
    return reason == ENOENT ? 127 : 126;
  }

  // Opened after the command was started: a fork would copy the server's threads. Recording continues if
  // the page cannot be opened.
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

  std::unique_ptr<MetricsServer> serve_metrics() const {
    if (metrics_.empty()) return nullptr;
    auto server = MetricsServer::start(metrics_);
    say(server ? (*server)->announcement() : fmt::format("vramscope: no metrics: {}\n", server.error().message));
    return server ? std::move(*server) : nullptr;
  }

  std::unique_ptr<OtlpPush> push_metrics() const {
    if (otlp_.empty()) return nullptr;
    auto push = OtlpPush::start(otlp_, say);
    if (!push) say(fmt::format("vramscope: no metrics: {}\n", push.error().message));
    return push ? std::move(*push) : nullptr;
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
                    : fmt::format("vramscope: the trace {} was removed while it was being written\n", trace.path.string());
      if (!summary) continue;  // never started: its losses have been reported
      // On a full disk, not all losses could be written to the file.
      std::uint64_t lost = 0;
      for (const auto& [kind, count] : trace.losses) lost += analyze::are_missing(kind) ? count : 0;
      summary->lost = std::max(summary->lost, lost);
      const bool nothing = summary->pools.empty() && summary->driver.allocs == 0;
      text += fmt::format("vramscope: {}{}\n", in_a_sentence(last_line(trace.path, *summary)), nothing ? host_pool_hint() : "");
    }
    const auto written = static_cast<std::size_t>(std::count_if(
        traces.begin(), traces.end(), [&](const auto& trace) { return std::filesystem::exists(trace.path, ignored); }));
    const auto where = traces.size() == 1 ? traces[0].path.string() : folder;
    if (written > 0)
      text += fmt::format("vramscope: {} in {}\n", written == 1 ? "trace" : fmt::format("{} traces", written), where);
    say(text);
  }

  // What 'vramscope summary' says first. A very large trace is not analyzed here: the command has ended, and the shell waits.
  static std::string last_line(const std::filesystem::path& trace, const analyze::Summary& summary) {
    constexpr std::uint64_t kMostEvents = 10'000'000;
    if (summary.pools.empty() || summary.events > kMostEvents) return analyze::summary_sentence(summary);
    const auto headline = analyze::headline_of(trace);
    return headline ? analyze::summary_sentence(summary, *headline) : analyze::summary_sentence(summary);
  }

  static std::string why_nothing(const collect::CollectOptions& options) {
    const auto running = collect::proc::with_variable(fmt::format("{}={}", spool::kEnvSpool, options.spool_folder.string()));
    if (!running.empty())
      return fmt::format(
          "no trace: no process allocated memory that can be recorded before the command exited. Its child process {} is still "
          "running and is "
          "not recorded; make the command wait for it.",
          running[0]);
    return fmt::format("no trace: no process allocated memory that can be recorded. 'vramscope doctor' shows what can be.{}",
                       host_pool_hint());
  }

  // The usual reason why nothing of a training run was recorded.
  static std::string host_pool_hint() {
    std::string hint;
    for (const analyze::Framework* framework : analyze::frameworks())
      for (const analyze::Package& package : framework->packages)
        if (const std::string variable(package.host_pool_variable); !variable.empty() && std::getenv(variable.c_str()) == nullptr)
          hint += fmt::format(" To record {} without a GPU, set {}=1.", package.name, variable);
    return hint;
  }

  RecordingOptions options_;
  std::vector<std::string> command_;
  bool no_python_ = false;
  bool no_source_ = false;
  bool quiet_ = false;
  std::string metrics_, otlp_;
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
