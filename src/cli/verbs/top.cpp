#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "cli/metrics_server.h"
#include "cli/otlp_push.h"
#include "cli/top/child_view.h"
#include "cli/top/frame.h"
#include "cli/top/metrics.h"
#include "cli/top/screen.h"
#include "cli/verb.h"
#include "support/json_writer.h"

namespace vramscope::cli {

namespace {

using namespace top;

std::uint64_t now_us() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  char text[16] = {};
  std::tm parts{};
  std::strftime(text, sizeof text, "%H:%M:%S", localtime_r(&now, &parts));
  return text;
}

std::string json_of(const State& state) {
  support::JsonWriter json;
  const auto maybe = [&](std::string_view name, const auto& value) {
    json.key(name);
    if (value)
      json.value(*value);
    else
      json.null();
  };
  json.begin_object().key("gpus").begin_array();
  for (const Gpu& gpu : state.gpus)
    json.begin_object()
        .member("index", gpu.index)
        .member("name", gpu.name)
        .member("used_bytes", gpu.used)
        .member("total_bytes", gpu.total)
        .member("pool_bytes", gpu.pool)
        .member("live_bytes", gpu.live)
        .end_object();
  json.end_array().key("processes").begin_array();
  for (const Process& p : state.processes) {
    json.begin_object().member("pid", p.pid).member("command", p.command).member("recorded", p.recorded).member("gpu", p.gpu);
    maybe("device_bytes", p.device);
    if (p.recorded) {
      json.member("framework", p.framework)
          .member("pool_bytes", p.pool)
          .member("live_bytes", p.live)
          .member("peak_bytes", p.peak)
          .member("ooms", p.ooms);
      maybe("step", p.step > 0 ? std::optional(p.step) : std::nullopt);
      maybe("phase", p.phase.empty() ? std::nullopt : std::optional(p.phase));
      maybe("steady_peak_bytes", p.steady_peak);
      maybe("growth_bytes_per_step", p.growth);
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json.text();
}

class TopVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.flag("--once", once_, "print one snapshot and exit");
    arguments.flag("--json", json_, "with --once: print JSON with exact bytes");
    arguments.flag("--ascii", view_.ascii, "use ASCII characters only");
    arguments.number("--every", view_.every_s, "refresh interval in seconds (default: 0.5)");
    arguments.text("--metrics", metrics_,
                   "serve metrics for Prometheus at this address, such as :9400, instead of the screen; with --once: print them",
                   "ADDRESS");
    arguments.text("--otlp", otlp_, std::string(kOtlpHelp) + ", instead of the screen", "URL");
    arguments.choice("--sort", view_.sort, {"device", "live", "peak", "growth", "pid"}, "sort order (default: device)");
  }

  Result<int> run() override {
    if (!(view_.every_s >= 0.05 && view_.every_s <= 3600)) return fail("--every must be from 0.05 to 3600 seconds");
    if (json_ && !once_) return fail("--json requires --once");
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    view_.host = host;
    if (!otlp_.empty() && once_) return fail("--otlp sends metrics until it is stopped; leave out --once");
    if (!once_ && !(metrics_.empty() && otlp_.empty())) return export_metrics();
    return once_ ? once() : live();
  }

 private:
  Result<int> once() {
    Gatherer gatherer;
    gatherer.gather(now_us());
    gatherer.wait_for_traces();
    State state = gatherer.gather(now_us());
    sort_processes(state.processes, view_.sort);
    view_.clock = clock_text();
    if (!metrics_.empty())
      fmt::print("{}", metrics_text(state, MetricsFormat::prometheus));
    else if (json_)
      fmt::print("{}\n", json_of(state));
    else
      fmt::print("{}", picture(state));
    return 0;
  }

  // Until Ctrl-C or a termination request.
  Result<int> export_metrics() const {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before other threads start, which inherit it
    std::unique_ptr<MetricsServer> server;
    if (!metrics_.empty()) {
      auto started = MetricsServer::start(metrics_);
      if (!started) return std::unexpected(started.error());
      server = std::move(*started);
      fmt::print(stderr, "{}", server->announcement());
    }
    std::unique_ptr<OtlpPush> push;
    if (!otlp_.empty()) {
      auto started = OtlpPush::start(otlp_, [](const std::string& text) { fmt::print(stderr, "{}", text); });
      if (!started) return std::unexpected(started.error());
      push = std::move(*started);
    }
    int received = 0;
    sigwait(&ends, &received);
    return 0;
  }

  std::string picture(const State& state) {
    view_.once = true;
    const auto height = 24 + state.gpus.size() + 2 * state.processes.size();
    std::string text = draw(state, view_, Screen::size().first, static_cast<int>(height)).plain();
    text.erase(text.find_last_not_of('\n') + 1);
    return text + "\n";
  }

  Result<int> live() {
    if (auto entered = Screen::enter(); !entered) return std::unexpected(entered.error());
    Gatherer gatherer;
    State state = gatherer.gather(now_us());
    ChildView children;
    std::optional<Canvas> shown;
    std::uint64_t next = 0;
    bool quit = false;
    while (!quit && !Screen::interrupted()) {
      if (!view_.paused && now_us() >= next) {
        state = gatherer.gather(now_us());
        view_.clock = clock_text();
        next = now_us() + static_cast<std::uint64_t>(view_.every_s * 1e6);
      }
      if (!view_.verb.empty()) view_.verb_output = children.lines();
      if (serving_) view_.notice = children.address().empty() ? "Preparing the page..." : children.address();
      const auto [width, height] = Screen::size();
      Canvas frame = draw(state, view_, width, height);
      Screen::write(frame.changes_from(shown ? &*shown : nullptr, Screen::depth()));
      shown = std::move(frame);
      const std::uint64_t now = now_us();
      for (const std::string& key :
           Screen::keys(view_.paused ? 1000 : static_cast<int>(next > now ? (next - now) / 1000 + 1 : 1)))
        quit = quit || press(key, state, children);
    }
    Screen::leave();
    return 0;
  }

  // True: quit.
  bool press(const std::string& key, const State& state, ChildView& children) {
    view_.notice.clear();  // read, or not wanted
    serving_ = false;
    if (view_.typing) {
      if (key == "enter")
        view_.typing = false;
      else if (key == "escape") {
        view_.typing = false;
        view_.filter.clear();
      } else if (key == "backspace")
        view_.filter = without_last_character(view_.filter);
      else if (key != "up" && key != "down" && view_.filter.size() < 100)
        view_.filter += key;
      return false;
    }
    if (key == "q" || key == "Q") return true;
    if (!view_.verb.empty() && key != "w") {
      if (key == "escape" || key == "enter" || key == "backspace") view_.verb.clear();
      if (key == "up" && view_.first_line > 0) --view_.first_line;
      if (key == "down" && view_.first_line + 1 < view_.verb_output.size()) ++view_.first_line;
      return false;
    }
    if (key == "enter" || key == "p" || key == "l" || key == "w")
      open(key, state, children);
    else if (key == "s")
      view_.sort = view_.sort == "device"   ? "live"
                   : view_.sort == "live"   ? "peak"
                   : view_.sort == "peak"   ? "growth"
                   : view_.sort == "growth" ? "pid"
                                            : "device";
    else if (key == "/")
      view_.typing = true;
    else if (key == "g")
      view_.by_gpu = !view_.by_gpu;
    else if (key == " ")
      view_.paused = !view_.paused;
    else if (key == "?")
      view_.help = !view_.help;
    else if (key == "escape") {
      view_.filter.clear();
      view_.help = false;
    } else if (key == "up" || key == "down")
      select(key == "up" ? -1 : 1, state);
    return false;
  }

  // What is known about the selected process and shown nowhere else on this screen.
  void open(const std::string& key, const State& state, ChildView& children) {
    const auto rows = shown_processes(state, view_);
    const auto chosen = std::ranges::find(rows, selected_process(rows, view_), &Process::pid);
    if (chosen == rows.end()) return;
    if (chosen->trace.empty()) {
      view_.notice = chosen->recorded ? "Nothing has been written yet." : "Not recorded: start it with 'vramscope run'.";
      return;
    }
    view_.selected = chosen->pid;  // it stays selected, whatever the order becomes
    if (key == "w") {
      children.serve(chosen->trace);
      serving_ = true;
      return;
    }
    view_.verb = key == "p" ? "peak" : key == "l" ? "leaks" : "summary";
    view_.first_line = 0;
    view_.verb_output.clear();
    children.ask(view_.verb, chosen->trace);
  }

  static std::string without_last_character(std::string text) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
    if (!text.empty()) text.pop_back();
    return text;
  }

  void select(int step, const State& state) {
    const auto rows = shown_processes(state, view_);
    if (rows.empty()) return;
    const auto found = std::ranges::find(rows, selected_process(rows, view_), &Process::pid);
    const int at = static_cast<int>(found - rows.begin());
    view_.selected = rows[static_cast<std::size_t>(std::clamp(at + step, 0, static_cast<int>(rows.size()) - 1))].pid;
  }

  View view_;
  bool serving_ = false;  // a page was requested, and its address is on the last line
  std::string metrics_, otlp_;
  bool once_ = false;
  bool json_ = false;
};

const Register kVerb{{.name = "top",
                      .group = Group::answer,
                      .help = "show what is on the GPUs right now, in the terminal",
                      .examples = "  vramscope top\n"
                                  "  vramscope top --once --json | jq '.processes[] | select(.recorded)'\n",
                      .make = make<TopVerb>}};

}  // namespace

}  // namespace vramscope::cli
