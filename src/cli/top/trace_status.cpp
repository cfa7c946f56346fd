#include "cli/top/trace_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <system_error>

#include "analyze/api.h"
#include "cli/top/model.h"
#include "support/units.h"

namespace vramscope::cli::top {

namespace {

constexpr std::uint64_t kRefreshUs = 2'000'000;
constexpr std::uint64_t kRest = 10;  // times as long as the last analysis took

struct Answer {
  std::optional<Bytes> steady_peak;
  std::optional<double> growth;
  std::int64_t step = 0;
  std::string phase, sentence;
  bool grows = false;
  std::vector<Category> at_peak, largest;
};

// "conv2d Relu": the layer and the last name of the op's path.
std::string block_name(const std::string& layer, const std::string& op) {
  const std::string last = op.substr(op.rfind('/') + 1);
  if (layer.empty()) return last.empty() ? "unnamed" : last;
  return last.empty() ? layer : layer + " " + last;
}

Answer analyze_trace(const std::filesystem::path& trace) {
  Answer out;
  auto opened = analyze::Engine::open(trace, {.keep_index = false, .threads = 1});
  if (!opened) return out;
  const analyze::Engine& engine = *opened;
  const analyze::Steps steps = engine.steps();
  if (!steps.steps.empty()) out.step = steps.steps.back().number;
  const int main = engine.main_place();
  const auto places = engine.places();
  if (main < 0 || static_cast<std::size_t>(main) >= places.size()) return out;
  const analyze::Place& place = places[static_cast<std::size_t>(main)];
  if (place.steady) out.steady_peak = place.steady_peak;
  if (const auto leaks = engine.leaks(); leaks && leaks->verdict != "cannot tell") {
    out.grows = leaks->verdict == "growing";
    out.growth = out.grows ? leaks->bytes_per_step : 0;
  }
  const std::string at = place.steady ? "steady" : "peak";
  if (const auto live = engine.live({.at = at, .by = {analyze::By::category}, .where = {}, .limit = 6}))
    for (const auto& group : live->groups) out.at_peak.push_back({group.keys[0], group.bytes});
  if (const auto live = engine.live({.at = at, .by = {analyze::By::layer, analyze::By::op}, .where = {}, .limit = 4}))
    for (const auto& group : live->groups) out.largest.push_back({block_name(group.keys[0], group.keys[1]), group.bytes});
  if (const auto now = engine.live({.at = "end", .by = {analyze::By::category}, .where = {}, .limit = 1})) out.phase = now->phase;
  out.sentence = analyze::headline(engine.overview(), engine.findings());
  return out;
}

// The trace of a process: the recording leaves a link to its folder next to the spool.
std::filesystem::path trace_of(const std::filesystem::path& spool_folder, std::uint32_t pid) {
  std::error_code error;
  const std::string part = fmt::format("-{}-", pid);
  for (const auto& file : std::filesystem::directory_iterator(spool_folder / "run", error))
    if (file.path().extension() == ".vram" && file.path().filename().string().find(part) != std::string::npos) return file.path();
  return {};
}

}  // namespace

struct TraceStatus::Shared {
  std::mutex mutex;
  std::condition_variable analyzed;
  Answer answer;
  std::string trace;
  bool is_analyzing = false;
  std::uint64_t next_us = 0;
};

TraceStatus::TraceStatus() : shared_(std::make_shared<Shared>()) {}
TraceStatus::~TraceStatus() = default;

void TraceStatus::fill(Process& process, const std::filesystem::path& spool_folder, std::uint64_t now_us) {
  const std::lock_guard lock(shared_->mutex);
  const Answer& a = shared_->answer;
  process.steady_peak = a.steady_peak;
  process.growth = a.growth;
  process.step = a.step;
  process.phase = a.phase;
  process.sentence = a.sentence;
  process.grows = a.grows;
  process.at_peak = a.at_peak;
  process.largest = a.largest;
  process.trace = shared_->trace;
  if (shared_->is_analyzing || now_us < shared_->next_us) return;
  const std::filesystem::path trace = trace_of(spool_folder, process.pid);
  shared_->next_us = now_us + kRefreshUs;
  if (trace.empty()) return;
  std::error_code gone;
  shared_->trace = std::filesystem::canonical(trace, gone).string();  // the link is removed with the recording, the file stays
  shared_->is_analyzing = true;
  const auto read_trace = [shared = shared_, trace, now_us] {
    const auto began = std::chrono::steady_clock::now();
    Answer answer = analyze_trace(trace);
    const auto took = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began).count());
    const std::lock_guard done(shared->mutex);
    shared->answer = std::move(answer);
    shared->next_us = std::max(shared->next_us, now_us + took + kRest * took);
    shared->is_analyzing = false;
    shared->analyzed.notify_all();
  };
  try {
    std::thread(read_trace).detach();
  } catch (const std::system_error&) {  // cannot start a thread: the totals are shown without an answer
    shared_->is_analyzing = false;
  }
}

void TraceStatus::wait() const {
  std::unique_lock lock(shared_->mutex);
  shared_->analyzed.wait(lock, [this] { return !shared_->is_analyzing; });
}

}  // namespace vramscope::cli::top
