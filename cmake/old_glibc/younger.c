/* What our code, or an archive that we link, calls of glibc and what is younger than 2.28. Each is written in terms of older
 * ones. A name that the linker misses belongs here, or into c23.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* --- 2.33: until then these were inline functions around the older names ------------------------------------------------------
 */

enum { kStatVersion = 1 };
struct stat;
int __xstat(int, const char*, struct stat*);
int __lxstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
int __fxstatat(int, int, const char*, struct stat*, int);

HIDDEN int stat(const char* path, struct stat* out) { return __xstat(kStatVersion, path, out); }
HIDDEN int lstat(const char* path, struct stat* out) { return __lxstat(kStatVersion, path, out); }
HIDDEN int fstat(int file, struct stat* out) { return __fxstat(kStatVersion, file, out); }
HIDDEN int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return __fxstatat(kStatVersion, folder, path, out, flags);
}
/* One layout on x86-64. */
HIDDEN int stat64(const char* path, struct stat* out) { return stat(path, out); }
HIDDEN int lstat64(const char* path, struct stat* out) { return lstat(path, out); }
HIDDEN int fstat64(int file, struct stat* out) { return fstat(file, out); }
HIDDEN int fstatat64(int folder, const char* path, struct stat* out, int flags) { return fstatat(folder, path, out, flags); }

/* --- 2.30, 2.32: threads ------------------------------------------------------------------------------------------------------
 */

HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* libstdc++ leaves out atomic instructions while this says that there is one thread: never. */
HIDDEN char __libc_single_threaded = 0;

/* The time of the old functions' own clock that is as far away as `time` is on `clock`. */
static struct timespec on_real_time(clockid_t clock, const struct timespec* time) {
  struct timespec there, here;
  clock_gettime(clock, &there);
  clock_gettime(CLOCK_REALTIME, &here);
  const int64_t second = 1000000000;
  const int64_t nanoseconds = (int64_t)here.tv_nsec + time->tv_nsec - there.tv_nsec + second; /* 0 .. 3 seconds */
  here.tv_sec += time->tv_sec - there.tv_sec - 1 + nanoseconds / second;
  here.tv_nsec = nanoseconds % second;
  if (here.tv_sec < 0) here.tv_sec = here.tv_nsec = 0;
  return here;
}

HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  const struct timespec deadline = on_real_time(clock, until);
  return pthread_cond_timedwait(condition, mutex, &deadline);
}
HIDDEN int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec deadline = on_real_time(clock, until);
  return pthread_mutex_timedlock(mutex, &deadline);
}
HIDDEN int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const struct timespec* until) {
  const struct timespec deadline = on_real_time(clock, until);
  return pthread_rwlock_timedrdlock(lock, &deadline);
}
HIDDEN int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const struct timespec* until) {
  const struct timespec deadline = on_real_time(clock, until);
  return pthread_rwlock_timedwrlock(lock, &deadline);
}

/* --- 2.35: how libgcc finds the table for an exception -------------------------------------------------------------------------
 */

struct Found { /* struct dl_find_object */
  unsigned long long flags;
  void* begin;
  void* end;
  struct link_map* map;
  void* table;
  unsigned long long reserved[7];
};
struct Search {
  uintptr_t address;
  struct Found* found;
};

static int look_in(struct dl_phdr_info* module, size_t size, void* data) {
  (void)size;
  const struct Search* search = data;
  const ElfW(Phdr)* code = NULL;
  const ElfW(Phdr)* table = NULL;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &module->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && search->address - (module->dlpi_addr + part->p_vaddr) < part->p_memsz) code = part;
    if (part->p_type == PT_GNU_EH_FRAME) table = part;
  }
  if (code == NULL) return 0;
  if (table == NULL) return -1; /* nothing else has this address */
  search->found->begin = (void*)(module->dlpi_addr + code->p_vaddr);
  search->found->end = (char*)search->found->begin + code->p_memsz;
  search->found->table = (void*)(module->dlpi_addr + table->p_vaddr);
  return 1;
}

/* Where a header declares it, it does so with a type of its own. */
HIDDEN int find_object(void* address, struct Found* found) __asm__("_dl_find_object");
int find_object(void* address, struct Found* found) {
  *found = (struct Found){0};
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_in, &search) == 1 ? 0 : -1;
}

/* --- 2.36: libstdc++'s std::random_device --------------------------------------------------------------------------------------
 */

HIDDEN uint32_t arc4random(void) {
  uint32_t value = 0;
  char* at = (char*)&value;
  for (size_t missing = sizeof value; missing > 0;) {
    const ssize_t got = getrandom(at + sizeof value - missing, missing, 0);
    if (got < 0 && errno != EINTR) __builtin_trap(); /* as glibc does: a number that can be guessed is worse */
    if (got > 0) missing -= (size_t)got;
  }
  return value;
}
