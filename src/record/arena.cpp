#include "record/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/intern.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/settings.h"
#include "record/text.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace vramscope::record {

using spool::SegmentHeader;
using spool::SegmentState;

// Zero-initialised, trivially destructible: usable before constructors and after destructors of the thread.
constinit thread_local ThreadState t_state{};
std::atomic<Control*> g_control;

namespace {

using Path = Text<sizeof(Options::spool_folder) + 64>;

std::atomic<bool> g_off;
// The pid of who sets up. A child that was forked meanwhile finds a foreign pid and takes the lock over.
std::atomic<int> g_setup_lock;
std::atomic<std::uint64_t> g_generations;
Path g_spool_path;
int g_lock_file = -1;

SegmentHeader* segment_at(const Control& control, std::uint32_t index) {
  return reinterpret_cast<SegmentHeader*>(control.segments + static_cast<std::size_t>(index) * spool::kSegmentBytes);
}

// Zeroed memory that a forked child finds zeroed again.
void* wiped_on_fork(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    munmap(memory, bytes);
    return nullptr;
  }
  return memory;
}

// Space first, mapping after it: a store to a mapped page without space behind it would be a SIGBUS in the user's program.
bool allocate_space(int file, std::size_t offset, std::size_t bytes) {
  // Beyond the limit on file sizes the kernel would send a deadly signal.
  rlimit largest{};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY && offset + bytes > largest.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  if (fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP) return false;
  static const char zeros[4096] = {};
  for (std::size_t done = 0; done < bytes; done += sizeof zeros)
    if (pwrite(file, zeros, sizeof zeros, static_cast<off_t>(offset + done)) != static_cast<ssize_t>(sizeof zeros)) return false;
  return true;
}

bool map_part(int file, std::byte* place, std::size_t offset, std::size_t bytes) {
  if (!allocate_space(file, offset, bytes)) return false;
  void* mapped = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, bytes, MADV_DONTFORK);
  return true;
}

// Held for the life of the process and never inherited. The descriptor is moved up, out of the way of programs that expect low
// numbers or close the first few; it is only ever used for the lock.
bool take_lock_file(const char* path) {
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const int high = fcntl(file, F_DUPFD_CLOEXEC, 400);
  if (high >= 0) {
    close(file);
    file = high;
  }
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  g_lock_file = file;
  return fcntl(file, F_SETLK, &lock) == 0;
}

// The first free <pid>-<n>: a pid can come again after exec.
int create_files() {
  for (unsigned n = 0; n < 1000; ++n) {
    Path base;
    base.add(g_options.spool_folder).add("/").add(static_cast<std::uint64_t>(getpid())).add("-").add(std::uint64_t{n});
    Path lock = base;
    lock.add(".lock");
    if (!take_lock_file(lock.c_str())) {
      if (errno == EEXIST) continue;
      return -1;
    }
    // The collector looks for *.spool: it must not see one before its header is whole.
    Path fresh = base;
    g_spool_path = base;
    fresh.add(".new");
    g_spool_path.add(".spool");
    return open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  return -1;
}

void fill_header(spool::Header& header, bool use_tsc) {
  header.version = spool::kVersion;
  header.header_bytes = spool::kHeaderBytes;
  header.pid = static_cast<std::uint32_t>(getpid());
  header.clock = use_tsc ? spool::Clock::tsc : spool::Clock::monotonic_ns;
  header.monotonic0_ns = base::monotonic_ns();
  header.ticks0 = use_tsc ? base::tsc() : header.monotonic0_ns;
  header.realtime0_ns = base::clock_ns(CLOCK_REALTIME);
  header.next_seq.store(1, std::memory_order_relaxed);
  const int command = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (command >= 0) {
    const ssize_t got = read(command, header.command, sizeof header.command - 1);
    header.command_bytes = got > 0 ? static_cast<std::uint32_t>(got) : 0;
    close(command);
  }
  header.magic = spool::kMagic;
}

bool make_spool(Control& control) {
  const int file = create_files();
  if (file < 0) return false;
  std::uint64_t limit = g_options.spool_limit;
  if (limit < spool::kExtentBytes) limit = spool::kExtentBytes;
  control.segment_limit = static_cast<std::uint32_t>(limit / spool::kExtentBytes * spool::kExtentSegments);
  const std::size_t reserved = spool::kHeaderBytes + std::size_t{control.segment_limit} * spool::kSegmentBytes;
  void* range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  auto* base = static_cast<std::byte*>(range);
  const bool mapped = range != MAP_FAILED && map_part(file, base, 0, spool::kHeaderBytes) &&
                      map_part(file, base + spool::kHeaderBytes, spool::kHeaderBytes, spool::kExtentBytes);
  const int reason = errno;
  close(file);
  if (mapped) {
    control.header = reinterpret_cast<spool::Header*>(base);
    control.segments = base + spool::kHeaderBytes;
    control.use_tsc = g_options.use_tsc;
    fill_header(*control.header, control.use_tsc);
    control.header->segment_count.store(spool::kExtentSegments, std::memory_order_release);
  }
  Path fresh;
  fresh.add(g_spool_path.c_str());
  const std::size_t stem = g_spool_path.size() - sizeof("spool") + 1;
  const_cast<char*>(fresh.c_str())[stem] = '\0';
  Path from;
  from.add(fresh.c_str()).add("new");
  if (mapped && rename(from.c_str(), g_spool_path.c_str()) == 0) return true;
  unlink(from.c_str());
  Path lock;
  lock.add(fresh.c_str()).add("lock");
  unlink(lock.c_str());
  errno = reason;
  return false;
}

const char* why_no_spool(int reason) {
  switch (reason) {
    case EFBIG:
      return "the spool could not be created: it is larger than the limit on file sizes (ulimit -f); raise it";
    case EACCES:
    case EPERM:
      return "the spool could not be created: the process is not allowed to write there; does it run as another user?";
    case ENOMEM:
      return "the spool could not be mapped: the limit on memory is reached (ulimit -v); raise it or lower --spool-limit";
    case EMFILE:
    case ENFILE:
      return "the spool could not be created: too many open files (ulimit -n)";
    case ENOENT:
      return "the spool could not be created: the recording was ended";
    default:
      return "the spool could not be created: disk full? Free space or set TMPDIR to a local folder";
  }
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

enum class Growth { grown, busy, refused };

Growth grow(Control& control) {
  // Holds the pid of the thread's process, so that a child forked in the middle is not locked out.
  static std::atomic<int> growing;
  const int me = getpid();
  int holder = 0;
  if (!growing.compare_exchange_strong(holder, me, std::memory_order_acquire)) {
    if (holder == me) return Growth::busy;
    growing.store(me, std::memory_order_relaxed);
  }
  const std::uint32_t count = control.header->segment_count.load(std::memory_order_relaxed);
  bool grown = false;
  if (count + spool::kExtentSegments <= control.segment_limit) {
    const int file = open(g_spool_path.c_str(), O_RDWR | O_CLOEXEC);
    if (file >= 0) {
      const std::size_t bytes = std::size_t{count} * spool::kSegmentBytes;
      grown = map_part(file, control.segments + bytes, spool::kHeaderBytes + bytes, spool::kExtentBytes);
      close(file);
    }
    if (grown) control.header->segment_count.store(count + spool::kExtentSegments, std::memory_order_release);
  }
  growing.store(0, std::memory_order_release);
  return grown ? Growth::grown : Growth::refused;
}

// The lowest free one: the steady state then goes round in few, warm segments.
SegmentHeader* take_free(Control& control) {
  const std::uint32_t count = control.header->segment_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    SegmentHeader* segment = segment_at(control, i);
    SegmentState expected = SegmentState::free;
    if (segment->state.load(std::memory_order_relaxed) == expected &&
        segment->state.compare_exchange_strong(expected, SegmentState::owned, std::memory_order_acquire))
      return segment;
  }
  return nullptr;
}

void seal(Control& control, SegmentHeader* segment) {
  segment->seal.store(control.header->seals.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  segment->state.store(SegmentState::sealed, std::memory_order_release);  // pairs with the collector's and the thief's CAS
}

SegmentHeader* take_oldest_sealed(Control& control) {
  const std::uint32_t count = control.header->segment_count.load(std::memory_order_acquire);
  for (int attempt = 0; attempt < 8; ++attempt) {
    SegmentHeader* oldest = nullptr;
    for (std::uint32_t i = 0; i < count; ++i) {
      SegmentHeader* segment = segment_at(control, i);
      if (segment->state.load(std::memory_order_acquire) == SegmentState::sealed &&
          (oldest == nullptr || segment->seal.load(std::memory_order_relaxed) < oldest->seal.load(std::memory_order_relaxed)))
        oldest = segment;
    }
    if (oldest == nullptr) return nullptr;
    SegmentState expected = SegmentState::sealed;
    if (oldest->state.compare_exchange_strong(expected, SegmentState::owned, std::memory_order_acquire)) return oldest;
  }
  return nullptr;
}

bool is_definition(spool::RecordKind kind) { return kind >= spool::RecordKind::string; }

// Bytes and number of the definitions in a segment.
struct Definitions {
  std::uint32_t bytes;
  std::uint32_t records;
};

// Calls body(record, its length) for each definition up to `end`.
template <typename Body>
Definitions each_definition(SegmentHeader* segment, std::uint32_t end, Body body) {
  auto* bytes = reinterpret_cast<std::byte*>(segment);
  Definitions found{};
  for (std::uint32_t at = sizeof(SegmentHeader); at < end;) {
    const auto* head = reinterpret_cast<const spool::RecordHead*>(bytes + at);
    const std::uint32_t length = head->slots * static_cast<std::uint32_t>(spool::kSlotBytes);
    if (length == 0 || length > end - at) break;
    at += length;
    if (!is_definition(head->kind)) continue;
    body(head, length);
    found.bytes += length;
    ++found.records;
  }
  return found;
}

// The oldest sealed segment whose events can be given up. A name is told once and needed for ever: definitions stay, and a
// segment that is nearly full of them is left alone.
SegmentHeader* take_for_overwriting(Control& control) {
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    SegmentHeader* segment = take_oldest_sealed(control);
    if (segment == nullptr) return nullptr;
    const Definitions kept = each_definition(segment, segment->committed.load(std::memory_order_relaxed),
                                             [](const spool::RecordHead*, std::uint32_t) {});
    const bool worth_it = kept.bytes <= spool::kSegmentBytes / 2;
    if (!worth_it && attempt + 1 < kAttempts) {
      seal(control, segment);
      continue;
    }
    const spool::Loss detail = spool::Loss::overwritten;
    control.header->lost[static_cast<std::size_t>(detail)].fetch_add(segment->records - kept.records, std::memory_order_relaxed);
    if (worth_it) return segment;
    control.header->lost[static_cast<std::size_t>(spool::Loss::names)].fetch_add(kept.records, std::memory_order_relaxed);
    segment->committed.store(sizeof(SegmentHeader), std::memory_order_relaxed);
    return segment;
  }
  return nullptr;
}

}  // namespace

std::uint64_t ticks(const Control& control) { return control.use_tsc ? base::tsc() : base::monotonic_ns(); }

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
  if (g_lock_file >= 0) close(g_lock_file);
  g_lock_file = -1;
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

bool next_segment(Control& control) {
  ThreadState& thread = t_state;
  if (thread.segment != nullptr) seal(control, reinterpret_cast<SegmentHeader*>(thread.segment));
  thread.segment = nullptr;
  SegmentHeader* segment = take_free(control);
  // Growing takes some 100 us, or some 10 ms where the thread that grows loses its core: that is waited for, and some 200 ms at
  // most. After that detail is lost rather than time.
  for (int moment = 0; segment == nullptr && moment < 2000; ++moment) {
    const Growth growth = grow(control);
    if (growth == Growth::refused) break;
    const timespec pause{0, moment < 50 ? 0 : 100'000};
    if (growth == Growth::busy) syscall(SYS_nanosleep, &pause, nullptr);
    segment = take_free(control);
  }
  std::uint32_t old_end = 0;  // of what an overwritten segment held
  if (segment == nullptr) {
    segment = take_for_overwriting(control);
    if (segment != nullptr) old_end = segment->committed.load(std::memory_order_relaxed);
  }
  if (segment == nullptr) {
    control.header->lost[static_cast<std::size_t>(spool::Loss::no_segment)].fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  // Emptied under the old generation: a reader that finds the new one must not find the old length with it. One that is still
  // copying the previous contents sees the new generation and throws its copy away.
  segment->committed.store(sizeof(SegmentHeader), std::memory_order_relaxed);
  segment->generation.fetch_add(1, std::memory_order_acq_rel);
  std::atomic_thread_fence(std::memory_order_release);
  segment->thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  segment->records = 0;
  thread.segment = reinterpret_cast<std::byte*>(segment);
  thread.cursor = sizeof(SegmentHeader);
  if (old_end == 0) return true;
  const Definitions kept = each_definition(segment, old_end, [&](const spool::RecordHead* record, std::uint32_t length) {
    memmove(thread.segment + thread.cursor, record, length);  // never to a higher place: what comes next is still unread there
    thread.cursor += length;
  });
  segment->records = kept.records;
  segment->committed.store(thread.cursor, std::memory_order_release);
  return true;
}

}  // namespace vramscope::record
