// Eight native threads allocate and free from one tsl::BFCAllocator as fast as they can, without any Python lock, and print the
// allocator's own statistics: the oracle for what was recorded. Built against the headers of the TensorFlow wheel that is tested.
#if __has_include("xla/tsl/framework/bfc_allocator.h")
#include "xla/tsl/framework/bfc_allocator.h"
#else
#include "tsl/framework/bfc_allocator.h"
#endif

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

class HostMemory : public tsl::SubAllocator {
 public:
  HostMemory() : SubAllocator({}, {}) {}
  void* Alloc(size_t alignment, size_t bytes, size_t* received) override {
    void* memory = std::aligned_alloc(alignment < 256 ? 256 : alignment, (bytes + 255) / 256 * 256);
    *received = bytes;
    VisitAlloc(memory, 0, bytes);
    held += bytes;
    most = std::max(most, held);
    return memory;
  }
  void Free(void* memory, size_t bytes) override {
    VisitFree(memory, 0, bytes);
    held -= bytes;
    std::free(memory);
  }
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override { return tsl::AllocatorMemoryType::kHostPageable; }

  // What the allocator holds: it asks and gives back under its lock.
  static inline uint64_t held = 0;
  static inline uint64_t most = 0;
};

// Each thread keeps up to 64 blocks and replaces a random one each time.
void churn(tsl::Allocator* allocator, int allocations, unsigned seed, std::atomic<uint64_t>* completed) {
  std::mt19937 random(seed);
  std::vector<void*> blocks(64, nullptr);
  for (int i = 0; i < allocations; ++i) {
    void*& block = blocks[random() % blocks.size()];
    if (block != nullptr) {
      allocator->DeallocateRaw(block);
      completed->fetch_add(1);
    }
    block = allocator->AllocateRaw(256, 1 + random() % 65536);
    completed->fetch_add(1);
  }
  // A third of the blocks stays.
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 3 == 0 || blocks[i] == nullptr) continue;
    allocator->DeallocateRaw(blocks[i]);
    completed->fetch_add(1);
  }
}

// Calls that returned, in a page that outlives the process: argv[3] names the file.
std::atomic<uint64_t>* counter_page(const char* path) {
  static std::atomic<uint64_t> local{0};
  std::FILE* file = path != nullptr ? std::fopen(path, "r+b") : nullptr;
  if (file == nullptr) return &local;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  return page != MAP_FAILED ? static_cast<std::atomic<uint64_t>*>(page) : &local;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 8;
  const int allocations = argc > 2 ? std::atoi(argv[2]) : 50000;
  std::atomic<uint64_t>* completed = counter_page(argc > 3 ? argv[3] : nullptr);
  tsl::BFCAllocator::Options options;
  options.allow_growth = true;
  tsl::BFCAllocator allocator(std::make_unique<HostMemory>(), size_t{8} << 30, "native_bfc", options);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(churn, &allocator, allocations, 1000u + unsigned(i), completed);
  for (auto& worker : workers) worker.join();
  if (auto check = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "vramscope_check"))) check("end");
  const auto stats = allocator.GetStats();
  std::printf(
      "{\"allocs\": %lld, \"peak_bytes\": %lld, \"end_bytes\": %lld, \"largest_alloc_bytes\": %lld, "
      "\"pool_end\": %llu, \"pool_peak\": %llu}\n",
      static_cast<long long>(stats->num_allocs), static_cast<long long>(stats->peak_bytes_in_use),
      static_cast<long long>(stats->bytes_in_use), static_cast<long long>(stats->largest_alloc_size),
      static_cast<unsigned long long>(HostMemory::held), static_cast<unsigned long long>(HostMemory::most));
  std::fflush(stdout);
  std::_Exit(0);
}
