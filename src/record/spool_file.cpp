#include "record/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <initializer_list>

#include "base/clock.h"
#include "record/options.h"
#include "record/text.h"
#include "spool/free_list.h"

namespace vramscope::record {

namespace {

using Path = Text<sizeof(Options::spool_folder) + 64>;

// The names of this process's files. Not on the stack, because a thread may have only 16 KiB of it. Written under the lock of
// set_up().
struct Names {
  Path lock, fresh, spool;
};
Names g_names;
int g_lock_file = -1;

// Which file it is, whatever its name or number refers to later.
struct Identity {
  dev_t device;
  ino_t inode;
};
Identity g_lock_identity, g_spool_identity;

bool identify(int file, Identity& identity) {
  struct stat info{};
  if (fstat(file, &info) != 0) return false;
  identity = {info.st_dev, info.st_ino};
  return true;
}

bool is(int file, const Identity& identity) {
  Identity found{};
  return identify(file, found) && found.device == identity.device && found.inode == identity.inode;
}

// Whether the file may grow by an extent: the program and its other processes need room there too. The first extent is always
// tried, because without it nothing is recorded. A system call, unlike statvfs(), which may read /proc/mounts.
bool leaves_enough(int file) {
  struct statfs system{};
  return fstatfs(file, &system) != 0 ||
         static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_frsize) >=
             g_options.spool_leaves + spool::kExtentBytes;
}

// Allocates space before mapping it: a store to a mapped page without space behind it would raise SIGBUS in the user's program.
bool allocate_space(int file, std::size_t offset, std::size_t bytes) {
  // Beyond the limit on file sizes, the kernel would send a deadly signal.
  rlimit largest{};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY && offset + bytes > largest.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  // A signal interrupts it on some file systems. Under a fast timer it may never finish; writing always gets ahead.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return true;
    if (errno != EINTR) break;
  }
  if (errno != EOPNOTSUPP && errno != EINTR) return false;
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

// Moved up, out of the way of programs that expect low numbers, close the first few, or have closed their standard output:
// otherwise the next file that they or we open would become it.
int open_high(const char* path, int flags) {
  constexpr int kOutOfTheWay = 400;
  const int file = open(path, flags | O_CLOEXEC, 0600);
  const int high = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, kOutOfTheWay) : -1;
  if (high < 0) return file;
  close(file);
  return high;
}

// Held for the life of the process and never inherited.
bool take_lock_file(const char* path) {
  const int file = open_high(path, O_RDWR | O_CREAT | O_EXCL);
  if (file < 0) return false;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  g_lock_file = file;
  identify(file, g_lock_identity);
  return fcntl(file, F_SETLK, &lock) == 0;
}

void name_files(unsigned n) {
  const auto pid = static_cast<std::uint64_t>(getpid());
  for (Path* name : {&g_names.lock, &g_names.fresh, &g_names.spool}) {
    name->clear();
    name->add(g_options.spool_folder).add("/").add(pid).add("-").add(std::uint64_t{n});
  }
  g_names.lock.add(".lock");
  g_names.fresh.add(".new");  // the collector looks for *.spool and must not see one before its header is complete
  g_names.spool.add(".spool");
}

// The first free <pid>-<n>: a pid can reappear after exec.
int create_files() {
  for (unsigned n = 0; n < 1000; ++n) {
    name_files(n);
    if (take_lock_file(g_names.lock.c_str())) return open_high(g_names.fresh.c_str(), O_RDWR | O_CREAT | O_EXCL);
    if (errno != EEXIST) return -1;
  }
  return -1;
}

// Adds the segments of a new extent to the free ones, the lowest on top.
void offer(Control& control, std::uint32_t first) {
  for (std::uint32_t i = first + spool::kExtentSegments; i-- > first;)
    spool::push_free(*control.header, *segment_at(control, i), i);
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

// What the spool may grow to. Addresses are reserved for all of it. Under a limit on addresses (ulimit -v), they belong to the
// program, so only a small part is used.
std::uint64_t largest_spool() {
  constexpr std::uint64_t kPart = 64;
  std::uint64_t limit = g_options.spool_limit;
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY && limit > addresses.rlim_cur / kPart)
    limit = addresses.rlim_cur / kPart;
  return limit > spool::kExtentBytes ? limit : spool::kExtentBytes;
}

}  // namespace

bool make_spool(Control& control) {
  const int file = create_files();
  if (file < 0) return false;
  identify(file, g_spool_identity);
  const std::uint64_t limit = largest_spool();
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
    control.header->segment_limit.store(control.segment_limit, std::memory_order_relaxed);
    control.header->segment_count.store(spool::kExtentSegments, std::memory_order_release);
    control.nothing_at.store(0, std::memory_order_relaxed);
    offer(control, 0);
  }
  if (mapped && rename(g_names.fresh.c_str(), g_names.spool.c_str()) == 0) return true;
  unlink(g_names.fresh.c_str());
  unlink(g_names.lock.c_str());
  if (range != MAP_FAILED) munmap(range, reserved);
  control.header = nullptr;
  errno = reason;
  return false;
}

const char* why_no_spool(int reason) {
  switch (reason) {
    case EFBIG:
      return "the spool could not be created: it is larger than the limit on file sizes (ulimit -f); raise it";
    case EACCES:
    case EPERM:
      return "the spool could not be created: permission denied; does the process run as another user?";
    case ENOMEM:
      return "the spool could not be mapped: the limit on memory (ulimit -v) was reached; raise it or lower --spool-limit";
    case EMFILE:
    case ENFILE:
      return "the spool could not be created: too many open files (ulimit -n)";
    case ENOENT:
      return "the spool could not be created: the recording has ended";
    default:
      return "the spool could not be created: is the disk full? Free some space, or set TMPDIR to a local folder";
  }
}

void release_lock_file() {
  // A program that closed all files may have given the number to a file of its own.
  if (g_lock_file >= 0 && is(g_lock_file, g_lock_identity)) close(g_lock_file);
  g_lock_file = -1;
}

Growth grow(Control& control) {
  // Stores the pid of the thread's process, so that a child forked in the middle is not locked out.
  static std::atomic<int> growing;
  const int me = getpid();
  // Asked before the limit: the thread that reaches the limit may still be offering what it added.
  if (growing.load(std::memory_order_acquire) == me) return Growth::busy;
  if (control.header->segment_count.load(std::memory_order_relaxed) + spool::kExtentSegments > control.segment_limit)
    return Growth::refused;
  int holder = 0;
  if (!growing.compare_exchange_strong(holder, me, std::memory_order_acquire)) {
    if (holder == me) return Growth::busy;
    growing.store(me, std::memory_order_relaxed);
  }
  const std::uint32_t count = control.header->segment_count.load(std::memory_order_relaxed);
  bool grown = false;
  if (count + spool::kExtentSegments <= control.segment_limit) {
    // Whoever may rename the spool folder could have put a link to another file in its place.
    const int file = open_high(g_names.spool.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0 && is(file, g_spool_identity) && leaves_enough(file)) {
      const std::size_t bytes = std::size_t{count} * spool::kSegmentBytes;
      grown = map_part(file, control.segments + bytes, spool::kHeaderBytes + bytes, spool::kExtentBytes);
    }
    if (file >= 0) close(file);
    control.header->segment_limit.store(grown ? control.segment_limit : count, std::memory_order_relaxed);
    if (grown) {
      control.header->segment_count.store(count + spool::kExtentSegments, std::memory_order_release);
      offer(control, count);
    }
  }
  growing.store(0, std::memory_order_release);
  return grown ? Growth::grown : Growth::refused;
}

}  // namespace vramscope::record
