#include "collect/collector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "collect/spool/spool_folder.h"
#include "collect/write/losses.h"

namespace vramscope::collect {

namespace {

constexpr std::uint64_t kBusyUs = 10'000;
constexpr std::uint64_t kCalmUs = 50'000;
constexpr std::uint64_t kIdleUs = 100'000;
constexpr std::size_t kManyRecords = 20'000;
constexpr std::uint64_t kFastestBytesPerUs = 400;  // what eight threads write that only allocate
constexpr std::uint64_t kRescanUs = 1'000'000;
constexpr std::uint64_t kCalibrateUs = 250'000;
constexpr std::uint64_t kEndCheckUs = 50'000;
constexpr std::uint64_t kRoundsUntilIdle = 5;

std::uint64_t now_us() { return monotonic_ns() / 1000; }

// Each round wakes a processor that the program may want, so rounds are rare, but even a sudden burst must find room in
// between.
std::uint64_t pause_us(std::uint64_t spool_bytes, std::size_t records) {
  if (records > kManyRecords) return kBusyUs;
  return std::clamp(spool_bytes / 8 / kFastestBytesPerUs, kBusyUs, kCalmUs);
}

}  // namespace

Collector::Collector(CollectOptions options) : options_(std::move(options)), sampler_(options_.sample_hz) {
  if (!options_.say) options_.say = [](const std::string&) {};
  manifest_.started_us = realtime_ns() / 1000;
  watch_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (watch_ >= 0 && inotify_add_watch(watch_, options_.spool_folder.c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
    close(watch_);
    watch_ = -1;
  }
  claim_folder();
  save_manifest();
  // Before the first process appears: the size of its context is the difference to this sample, and in a container a process is
  // identified by having appeared after it.
  sampler_.sample(now_us(), false);
}

Collector::~Collector() {
  if (watch_ >= 0) close(watch_);
  if (claim_ >= 0) close(claim_);
}

// A lock that the kernel releases when its holder dies: a recovery waits for that (spool/folder_claim.h).
void Collector::claim_folder() {
  claim_ = ::open((options_.spool_folder / kClaimName).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (claim_ >= 0) fcntl(claim_, F_SETLK, &lock);
}

bool Collector::folder_changed() {
  if (watch_ < 0) return true;
  char buffer[4096];
  bool changed = false;
  while (read(watch_, buffer, sizeof buffer) > 0) changed = true;
  return changed;
}

bool Collector::find_spools() {
  std::error_code error;
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator(options_.spool_folder, error)) {
    if (entry.path().extension() != ".spool" || !known_.insert(entry.path()).second) continue;
    open(entry.path());
    found = true;
  }
  return found;
}

void Collector::open(const std::filesystem::path& spool) {
  auto session = Session::open(spool, options_, clock_, sampler_);
  if (!session) {
    options_.say(fmt::format("vramscope: {}\n", session.error().message));
    return;
  }
  sessions_.push_back(std::move(*session));
}

std::uint64_t Collector::poll() {
  const std::uint64_t now = now_us();
  if (now - last_calibration_us_ >= kCalibrateUs) {
    last_calibration_us_ = now;
    clock_.calibrate();
  }
  const auto fast = [](const auto& session) { return session->wants_fast_samples(); };
  const bool urgent = sampler_.devices() > 0 && std::any_of(sessions_.begin(), sessions_.end(), fast);
  // Before new processes are added: they need a sample without themselves.
  const bool sampled = sampler_.sample(now, urgent);
  if (folder_changed() || now - last_scan_us_ >= kRescanUs) {
    last_scan_us_ = now;
    if (find_spools()) idle_rounds_ = 0;
  }

  std::size_t records = 0;
  for (auto& session : sessions_) {
    records += session->poll(now);
    if (sampled) session->sample(now);  // after the events that came before it
  }
  idle_rounds_ = records > 0 ? 0 : idle_rounds_ + 1;

  if (now - last_end_check_us_ >= kEndCheckUs) {
    last_end_check_us_ = now;
    for (std::size_t i = sessions_.size(); i-- > 0;)
      if (may_end(*sessions_[i])) end_session(i, false);
  }
  if (urgent) return kBusyUs;
  const std::uint64_t sample_us = options_.sample_hz > 0 ? static_cast<std::uint64_t>(1e6 / options_.sample_hz) : kIdleUs;
  const std::uint64_t pause = pause_us(options_.spool_limit, records);
  const std::uint64_t longest = idle_rounds_ < kRoundsUntilIdle ? pause : std::min(kIdleUs, 2 * pause);
  return std::min(longest, std::max(sample_us, kBusyUs));
}

bool Collector::may_end(const Session& session) const {
  // A zombie that is our own child has an exit status for us that has not been collected yet.
  const bool own = static_cast<pid_t>(session.process()) == child_ && !child_status_;
  return session.has_ended() && !(own && proc::is_dead(session.process()));
}

void Collector::child_ended(int wait_status) {
  child_status_ = wait_status;
  if (WIFEXITED(wait_status)) manifest_.exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) manifest_.signal = WTERMSIG(wait_status);
  idle_rounds_ = 0;
}

void Collector::end_session(std::size_t index, bool still_running) {
  Session& session = *sessions_[index];
  std::map<std::string, std::string> ending;
  if (still_running) {
    ending["process.ended"] = "no: still running when the recording ended";
  } else if (static_cast<pid_t>(session.process()) == child_ && child_status_ && proc::is_dead(session.process())) {
    if (WIFEXITED(*child_status_)) ending["process.exit_code"] = fmt::format("{}", WEXITSTATUS(*child_status_));
    if (WIFSIGNALED(*child_status_)) ending["process.signal"] = fmt::format("{}", WTERMSIG(*child_status_));
  }
  TraceInfo info = session.finish(ending);
  session.remove_files();
  // The name is reused: a program that the process executes, or another process with its number, finds it free.
  std::error_code ignored;
  if (!std::filesystem::exists(session.spool_path(), ignored)) known_.erase(session.spool_path());
  const bool keep = session.has_trace() || !info.losses.empty();
  sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(index));
  if (!keep) return;
  manifest_.traces.push_back(std::move(info));
  save_manifest();
}

void Collector::finish(std::uint64_t grace_us) {
  const std::uint64_t deadline = now_us() + grace_us;
  find_spools();
  last_end_check_us_ = 0;
  poll();
  while (!sessions_.empty() && now_us() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(kBusyUs));
    poll();
  }
  if (!sessions_.empty()) {
    options_.say(fmt::format("vramscope: {} recorded {} still running; the recording ends here.\n", sessions_.size(),
                             sessions_.size() == 1 ? "process is" : "processes are"));
    for (auto& session : sessions_) session->stop_recording();
    std::this_thread::sleep_for(std::chrono::microseconds(kBusyUs));  // events that were being written when the flag was set
    while (!sessions_.empty()) end_session(sessions_.size() - 1, true);
  }
  manifest_.ended_us = realtime_ns() / 1000;
  save_manifest();
}

void Collector::save_manifest() {
  const Status status = write_manifest(options_, manifest_);
  if (!status && !manifest_failed_) {
    manifest_failed_ = true;
    options_.say(fmt::format("vramscope: {}\n", status.error().message));
  }
}

}  // namespace vramscope::collect
