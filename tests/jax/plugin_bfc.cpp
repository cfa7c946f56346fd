// Drives the BFC allocator inside one of JAX's CUDA plugins through its hidden constructor, over memory of the fake driver, and
// prints the allocator's own statistics as JSON.
//
//   plugin_bfc PLUGIN CONSTRUCTOR VTABLE ALLOCATE DEALLOCATE GET_STATS OPERATIONS THREADS
//
// CONSTRUCTOR and VTABLE are offsets in the plugin, the next three the places of functions in the vtable: the test reads them
// from the symbols of the unstripped plugin. Each thread makes OPERATIONS random allocations and frees, and leaves some blocks
// live. Then two requests fail, for 4 GiB and for a byte more. The pool is called GPU_0_bfc, as in JAX.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using CuFree = int (*)(std::uint64_t);
using CuAlloc = int (*)(std::uint64_t*, std::size_t);

struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  CuAlloc allocate = reinterpret_cast<CuAlloc>(dlsym(library, "cuMemAlloc_v2"));
  CuFree free = reinterpret_cast<CuFree>(dlsym(library, "cuMemFree_v2"));

  void start() const {
    reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"))(0);
    void* context = nullptr;
    reinterpret_cast<int (*)(void**, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"))(&context, 0);
    use(context);
    context_ = context;
  }
  void use(void* context) const { reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"))(context); }
  void use() const { use(context_); }

 private:
  mutable void* context_ = nullptr;
};
const Driver* g_driver;

// tsl::SubAllocator: the order of its virtual functions has not changed; later versions added some at the end.
class SubAllocator {
 public:
  virtual ~SubAllocator() = default;
  virtual void* Alloc(std::size_t /*alignment*/, std::size_t bytes, std::size_t* received) {
    std::uint64_t address = 0;
    g_driver->use();
    if (g_driver->allocate(&address, bytes) != 0) return nullptr;
    *received = bytes;
    return reinterpret_cast<void*>(address);
  }
  virtual void Free(void* memory, std::size_t /*bytes*/) { g_driver->free(reinterpret_cast<std::uint64_t>(memory)); }
  virtual bool SupportsCoalescing() const { return false; }
  virtual int GetMemoryType() const { return 1; }  // device
  virtual std::size_t GetAllocationGranularity() const { return 1; }

 private:
  std::vector<std::function<void(void*, int, std::size_t)>> alloc_visitors_, free_visitors_;
};

struct Attributes {  // tsl::AllocationAttributes
  bool retry_on_failure = false;
  bool allocation_will_be_logged = false;
  void* freed_by_func = nullptr;
  std::uint64_t later_versions[4] = {};
};

struct Stats {  // the start of tsl::AllocatorStats
  std::int64_t allocs, in_use, peak, largest, limit;
};

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 0); }

struct Slots {
  std::uint64_t allocate, deallocate, get_stats;
};

void* slot(void* allocator, std::uint64_t place) { return (*static_cast<void***>(allocator))[place]; }

void work(void* allocator, const Slots& slots, std::uint64_t operations, unsigned seed) {
  using Allocate = void* (*)(void*, std::size_t, std::size_t, const Attributes&);
  using Deallocate = void (*)(void*, void*);
  std::mt19937 random(seed);
  std::vector<void*> live;
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (live.size() > 200 || (!live.empty() && random() % 2 == 0)) {
      std::swap(live[random() % live.size()], live.back());
      reinterpret_cast<Deallocate>(slot(allocator, slots.deallocate))(allocator, live.back());
      live.pop_back();
      continue;
    }
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 22));
    if (void* block = reinterpret_cast<Allocate>(slot(allocator, slots.allocate))(allocator, 64, bytes, Attributes{}))
      live.push_back(block);
  }
}

// More than the pool may hold: once for a caller that can do without the block, once for one that cannot.
bool is_refused(void* allocator, const Slots& slots, std::size_t bytes) {
  using Allocate = void* (*)(void*, std::size_t, std::size_t, const Attributes&);
  const auto allocate = reinterpret_cast<Allocate>(slot(allocator, slots.allocate));
  return allocate(allocator, 64, bytes, {.retry_on_failure = false}) == nullptr &&
         allocate(allocator, 64, bytes + 1, {.retry_on_failure = true}) == nullptr;
}

std::uintptr_t base_of(void* library) {
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  return map->l_addr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) return 2;
  void* const plugin = dlopen(argv[1], RTLD_LAZY);
  if (plugin == nullptr || dlsym(plugin, "GetPjrtApi") == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const Driver driver;
  g_driver = &driver;
  driver.start();
  const std::uintptr_t base = base_of(plugin);
  const Slots slots{number(argv[4]), number(argv[5]), number(argv[6])};

  using Construct = void (*)(void*, std::unique_ptr<SubAllocator>, std::size_t, const std::string&, const void*);
  alignas(64) static unsigned char object[8192];
  unsigned char options[128] = {1};  // allow_growth; the rest is false or 0
  constexpr std::size_t kLimit = std::size_t{4} << 30;
  reinterpret_cast<Construct>(base + number(argv[2]))(object, std::make_unique<SubAllocator>(), kLimit, "GPU_0_bfc", options);
  if (*reinterpret_cast<std::uintptr_t*>(object) != base + number(argv[3]) + 16) return 3;  // not the class that was meant

  std::vector<std::thread> threads;
  const std::uint64_t operations = number(argv[7]);
  for (unsigned i = 0; i < number(argv[8]); ++i) threads.emplace_back([&, i] { work(object, slots, operations, i); });
  for (auto& thread : threads) thread.join();
  if (!is_refused(object, slots, kLimit)) return 4;

  if (auto* check = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "vramscope_check"))) check("end");
  alignas(16) unsigned char returned[2048] = {};
  reinterpret_cast<void* (*)(void*, void*)>(slot(object, slots.get_stats))(returned, object);
  Stats stats{};
  std::memcpy(&stats, returned, sizeof stats);
  std::printf(
      "{\"allocs\": %lld, \"current_bytes\": %lld, \"peak_bytes\": %lld, \"largest_bytes\": %lld, \"limit_bytes\": %lld}\n",
      static_cast<long long>(stats.allocs), static_cast<long long>(stats.in_use), static_cast<long long>(stats.peak),
      static_cast<long long>(stats.largest), static_cast<long long>(stats.limit));
  std::fflush(stdout);
  std::_Exit(0);  // the allocator complains about blocks that are left
}
