// The part of a session that asks whether its process and its threads are alive.
#include <fmt/format.h>

#include <filesystem>

#include "collect/session.h"

namespace vramscope::collect {

bool Session::maps_spool(proc::Pid pid) const {
  const auto& path = spool_.path();
  return proc::maps_file(pid, (path.parent_path().filename() / path.filename()).string());
}

// A process in a PID namespace of its own writes numbers that mean nothing here, or another process. Only the kernel knows who
// holds the lock.
proc::Pid Session::find_process() const { return threads_visible_ ? pid_ : spool_.lock_holder().value_or(pid_); }

bool Session::is_dead() const { return proc::is_dead(process_) && !spool_.is_locked(); }

// When in doubt, yes: taking a segment from a thread that still writes to it would lose events.
bool Session::thread_lives(std::uint32_t tid) const {
  if (threads_visible_ && proc::has_thread(process_, process_)) return proc::has_thread(process_, tid);
  return spool_.is_locked();
}

// One process loses its recording; the others, and the command, continue.
void Session::check_length() {
  if (cut_ || !spool_.was_cut()) return;
  cut_ = true;
  if (options_.recovering) {
    problem_ = fmt::format("{}: was truncated while it was being read", spool_.path().string());
    return;
  }
  spool_.restore_length();
  options_.say(fmt::format("vramscope: process {}: its spool was truncated by another program; its recording ends here\n", pid_));
}

bool Session::has_ended() const {
  if (cut_) return true;
  if (spool_.is_locked()) return false;
  if (proc::is_dead(process_) || proc::start_ticks(process_).value_or(0) != start_ticks_) return true;
  // A late attach that ended: the recorder says so and lets go of its lock, the mapping stays.
  if (spool_.header().stop.load(std::memory_order_acquire) != 0) return true;
  // The process lives, without its lock: it has executed another program, or has closed all descriptors and keeps recording.
  return !maps_spool(process_);
}

}  // namespace vramscope::collect
