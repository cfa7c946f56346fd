// The C functions that the injected library uses: its own, and hidden.
//
// A sanitizer, a profiler or another preloaded library may have placed its own memcpy or open before glibc's. During start-up
// such a function does not work yet (it looks up the one it replaces with dlsym, which is ours), and later it would attribute
// our actions to the program. With the definitions here, every call of ours, including those that the compiler generates, stays
// inside the library. The system calls are not cancellation points either: a thread is never ended inside a hook.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <emmintrin.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

// Has another name in C++, because glibc's headers declare the plain one differently.
#define VS_OWN(result, name, ...)                                                            \
  __attribute__((visibility("hidden"), used)) result own_##name(__VA_ARGS__) __asm__(#name); \
  result own_##name(__VA_ARGS__)

extern "C" {

// Bytes and texts. Plain loops except for strlen, because these copy names, not blocks.

VS_OWN(void*, memcpy, void* __restrict to, const void* __restrict from, std::size_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  for (; bytes >= 8; bytes -= 8, out += 8, in += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, in, 8);
    __builtin_memcpy(out, &word, 8);
  }
  for (; bytes != 0; --bytes) *out++ = *in++;
  return to;
}

VS_OWN(void*, memmove, void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  if (reinterpret_cast<std::uintptr_t>(out) - reinterpret_cast<std::uintptr_t>(in) >= bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out[i] = in[i];
  } else {
    while (bytes-- != 0) out[bytes] = in[bytes];
  }
  return to;
}

VS_OWN(void*, memset, void* to, int value, std::size_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(value);
  return to;
}

VS_OWN(int, memcmp, const void* left, const void* right, std::size_t bytes) {
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (std::size_t i = 0; i < bytes; ++i)
    if (a[i] != b[i]) return a[i] - b[i];
  return 0;
}

// Called for every event, to name its op: 16 bytes at a time. Aligned, so that no read reaches into an unmapped page.
VS_OWN(std::size_t, strlen, const char* text) {
  const auto address = reinterpret_cast<std::uintptr_t>(text);
  const auto* block = reinterpret_cast<const __m128i*>(address & ~std::uintptr_t{15});
  const __m128i zero = _mm_setzero_si128();
  unsigned ends = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(block), zero))) >> (address & 15);
  if (ends != 0) return static_cast<std::size_t>(__builtin_ctz(ends));
  do ends = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(++block), zero)));
  while (ends == 0);
  return reinterpret_cast<std::uintptr_t>(block) + static_cast<unsigned>(__builtin_ctz(ends)) - address;
}

VS_OWN(int, strncmp, const char* left, const char* right, std::size_t most) {
  for (std::size_t i = 0; i < most; ++i) {
    const int difference = static_cast<unsigned char>(left[i]) - static_cast<unsigned char>(right[i]);
    if (difference != 0 || left[i] == '\0') return difference;
  }
  return 0;
}

VS_OWN(int, strcmp, const char* left, const char* right) { return own_strncmp(left, right, SIZE_MAX); }

VS_OWN(char*, strncpy, char* __restrict to, const char* __restrict from, std::size_t bytes) {
  std::size_t i = 0;
  for (; i < bytes && from[i] != '\0'; ++i) to[i] = from[i];
  for (; i < bytes; ++i) to[i] = '\0';
  return to;
}

VS_OWN(const char*, strrchr, const char* text, int wanted) {
  const char* last = nullptr;
  for (;; ++text) {
    if (*text == static_cast<char>(wanted)) last = text;
    if (*text == '\0') return last;
  }
}

VS_OWN(const char*, strstr, const char* text, const char* part) {
  const std::size_t length = own_strlen(part);
  for (;; ++text) {
    if (own_strncmp(text, part, length) == 0) return text;
    if (*text == '\0') return nullptr;
  }
}

VS_OWN(char*, getenv, const char* name) {
  const std::size_t length = own_strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (own_strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return nullptr;
}

// The same system calls that glibc makes, because a sandbox may allow no others. syscall() sets errno and is never replaced.

VS_OWN(int, open, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

VS_OWN(int, fcntl, int file, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}

VS_OWN(int, close, int file) { return static_cast<int>(syscall(SYS_close, file)); }
VS_OWN(int, fstat, int file, struct stat* info) { return static_cast<int>(syscall(SYS_fstat, file, info)); }
VS_OWN(ssize_t, read, int file, void* to, std::size_t bytes) { return syscall(SYS_read, file, to, bytes); }
VS_OWN(ssize_t, write, int file, const void* from, std::size_t bytes) { return syscall(SYS_write, file, from, bytes); }
VS_OWN(ssize_t, pread, int file, void* to, std::size_t bytes, off_t at) { return syscall(SYS_pread64, file, to, bytes, at); }
VS_OWN(ssize_t, pwrite, int file, const void* from, std::size_t bytes, off_t at) {
  return syscall(SYS_pwrite64, file, from, bytes, at);
}
VS_OWN(int, fallocate, int file, int mode, off_t at, off_t bytes) {
  return static_cast<int>(syscall(SYS_fallocate, file, mode, at, bytes));
}
VS_OWN(int, pipe2, int* ends, int flags) { return static_cast<int>(syscall(SYS_pipe2, ends, flags)); }
VS_OWN(int, access, const char* path, int mode) { return static_cast<int>(syscall(SYS_access, path, mode)); }
VS_OWN(int, unlink, const char* path) { return static_cast<int>(syscall(SYS_unlink, path)); }
VS_OWN(int, rename, const char* from, const char* to) { return static_cast<int>(syscall(SYS_rename, from, to)); }
VS_OWN(ssize_t, readlink, const char* path, char* to, std::size_t bytes) { return syscall(SYS_readlink, path, to, bytes); }

VS_OWN(void*, mmap, void* place, std::size_t bytes, int protection, int flags, int file, off_t at) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, place, bytes, protection, flags, file, at));
}
VS_OWN(int, munmap, void* place, std::size_t bytes) { return static_cast<int>(syscall(SYS_munmap, place, bytes)); }
VS_OWN(int, mprotect, void* place, std::size_t bytes, int protection) {
  return static_cast<int>(syscall(SYS_mprotect, place, bytes, protection));
}
VS_OWN(int, madvise, void* place, std::size_t bytes, int advice) {
  return static_cast<int>(syscall(SYS_madvise, place, bytes, advice));
}

VS_OWN(pid_t, getpid) { return static_cast<pid_t>(syscall(SYS_getpid)); }
VS_OWN(int, getrlimit, __rlimit_resource_t resource, rlimit* limit) {
  return static_cast<int>(syscall(SYS_prlimit64, 0, resource, nullptr, limit));
}
VS_OWN(int, nanosleep, const timespec* time, timespec* left) { return static_cast<int>(syscall(SYS_nanosleep, time, left)); }
VS_OWN(ssize_t, process_vm_readv, pid_t process, const iovec* local, unsigned long local_count, const iovec* remote,
       unsigned long remote_count, unsigned long flags) {
  return syscall(SYS_process_vm_readv, process, local, local_count, remote, remote_count, flags);
}
}
