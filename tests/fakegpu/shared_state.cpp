#include "shared_state.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace fakegpu {
namespace {

ProcessEntry* own = nullptr;

void forget_own_entry() { own = nullptr; }

void* map_state() {
  const char* path = std::getenv("FAKEGPU_STATE");
  if (path != nullptr && *path != '\0') {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, sizeof(SharedState)) == 0) {
      void* memory = mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      close(fd);
      if (memory != MAP_FAILED) return memory;
    }
  }
  return mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

SharedState* shared_state() {
  static auto* state = static_cast<SharedState*>(map_state());
  return state;
}

bool alive(std::int32_t pid) { return pid != 0 && (kill(pid, 0) == 0 || errno == EPERM); }

ProcessEntry* own_entry() {
  if (own != nullptr) return own;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_own_entry);
  (void)registered;
  const std::int32_t self = getpid();
  for (ProcessEntry& entry : shared_state()->processes) {
    std::int32_t pid = entry.pid.load();
    if (alive(pid) && pid != self) continue;
    if (!entry.pid.compare_exchange_strong(pid, self)) continue;
    for (int device = 0; device < kMaxDevices; ++device) {
      entry.contexts[device] = 0;
      entry.used[device] = 0;
      entry.overhead[device] = 0;
    }
    return own = &entry;
  }
  static ProcessEntry spare;  // the file is full: this process stays unseen
  return own = &spare;
}

std::uint64_t number_from_env(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

int device_count() {
  static const auto count = static_cast<int>(number_from_env("FAKEGPU_DEVICES", 1));
  return count < 0 ? 0 : (count > kMaxDevices ? kMaxDevices : count);
}

std::uint64_t device_bytes() {
  static const std::uint64_t bytes = number_from_env("FAKEGPU_MEMORY", 8ull << 30);
  return bytes;
}

std::uint64_t device_used(int device) {
  std::uint64_t sum = 0;
  for (const ProcessEntry& entry : shared_state()->processes) {
    if (alive(entry.pid.load())) sum += entry.used[device].load() + entry.overhead[device].load();
  }
  return sum;
}

}  // namespace fakegpu
