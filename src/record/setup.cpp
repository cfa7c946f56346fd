#include "record/setup.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/intern.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/spool_file.h"
#include "record/state.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace vramscope::record {

// Zero-initialized and trivially destructible: usable before constructors and after destructors of the thread.
constinit thread_local ThreadState t_state{};
std::atomic<Control*> g_control;

namespace {

std::atomic<bool> g_off;
// The pid of the process that is setting up. A child that was forked meanwhile finds another pid and takes over the lock.
std::atomic<int> g_setup_lock;
std::atomic<std::uint64_t> g_generations;

// Zeroed memory that is zeroed again in a forked child.
void* wiped_on_fork(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    munmap(memory, bytes);
    return nullptr;
  }
  return memory;
}

Setup start_recording() {
  Control* control = g_control.load(std::memory_order_acquire);
  if (control == nullptr) {
    control = static_cast<Control*>(wiped_on_fork(4096));
    if (control == nullptr || !make_text_tables(&wiped_on_fork)) {
      say_once("memory for the recorder could not be mapped", "nothing is recorded in this process");
      return Setup::off;
    }
  }
  if (!make_spool(*control)) {
    say_once(why_no_spool(errno), "nothing is recorded in this process");
    return Setup::off;
  }
  control->generation.store(g_generations.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
  g_control.store(control, std::memory_order_release);
  return Setup::recording;
}

}  // namespace

void turn_off() { g_off.store(true, std::memory_order_relaxed); }
void turn_on() { g_off.store(false, std::memory_order_relaxed); }

void end_recording() {
  turn_off();
  Control* control = g_control.load(std::memory_order_acquire);
  if (control == nullptr || control->generation.load(std::memory_order_acquire) == 0) return;
  control->header->stop.store(1, std::memory_order_release);
  // Threads that were inside a hook finish their record; the mapping stays, so that a late one does no harm.
  const timespec moment{0, 2'000'000};
  nanosleep(&moment, nullptr);
  control->generation.store(0, std::memory_order_release);
  forget_texts();
  release_lock_file();
}

bool is_off() { return g_off.load(std::memory_order_relaxed); }

Setup set_up() {
  if (g_off.load(std::memory_order_relaxed)) return Setup::off;
  if (g_options.spool_folder[0] == '\0') {
    turn_off();
    return Setup::off;
  }
  const int me = getpid();
  for (int holder = 0; !g_setup_lock.compare_exchange_weak(holder, me, std::memory_order_acquire); holder = 0) {
    if (holder != 0 && holder != me && g_setup_lock.compare_exchange_strong(holder, me, std::memory_order_acquire)) break;
    syscall(SYS_sched_yield);
  }
  Control* control = g_control.load(std::memory_order_acquire);
  Setup result = Setup::recording;
  if (control == nullptr || control->generation.load(std::memory_order_acquire) == 0) {
    result = start_recording();
    if (result == Setup::off) turn_off();
  }
  g_setup_lock.store(0, std::memory_order_release);
  return result;
}

}  // namespace vramscope::record
