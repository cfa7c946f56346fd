// The fake driver's state. One lock for all of it: correctness before speed, and races belong to the code under test.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capture/cuda/abi.h"
#include "device_memory.h"
#include "faults.h"
#include "shared_state.h"

// NOLINTNEXTLINE: every file here speaks the driver's own names
using namespace vramscope::capture::cuda;

// Declares what the fake exports: the hook table, the queries it uses, and extra.inc.
extern "C" {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) \
  __attribute__((visibility("default"))) CUresult symbol parameters;
#define VS_QUERY(symbol, base, since, per_thread, parameters) __attribute__((visibility("default"))) CUresult symbol parameters;
#include "capture/cuda/hooks.inc"
#define FAKE_ENTRY(symbol, base, since, per_thread, parameters) __attribute__((visibility("default"))) CUresult symbol parameters;
#include "extra.inc"
}

namespace fakegpu {

inline constexpr std::uint64_t kMiB = 1ull << 20;
inline constexpr std::uint64_t kContextBytes = 518 * kMiB;                // attributed to the process
inline constexpr std::uint64_t kContextOverhead = 5 * kMiB + 640 * 1024;  // attributed to nobody
inline constexpr std::uint64_t kPoolStep = 32 * kMiB;

struct Context {
  int device;
  bool primary;
  std::map<std::uint64_t, int> opened;  // IPC address -> count
};

struct Pool {
  int device;  // -1 = host
  std::uint64_t used = 0;
  std::uint64_t reserved = 0;
  std::uint64_t threshold = 0;
  bool dead = false;
};

struct Piece {  // any address that cuMemFree accepts
  enum class Kind { linear, managed, pooled, graph } kind;
  int device;
  std::uint64_t bytes;
  Context* context;  // linear, managed
  Pool* pool;        // pooled
};

struct Physical {  // cuMemCreate
  int device;      // -1 = host
  std::uint64_t bytes;
  int refs = 1;
  int mappings = 0;
  bool imported = false;
};

struct Mapping {
  std::uint64_t bytes;
  std::uint64_t handle;
};

struct Stream {
  int device;
  bool capturing = false;
};

struct Graph {
  int device;
  std::uint64_t bytes = 0;  // of its allocation nodes
};

struct Host {
  std::uint64_t bytes;
  bool registered;
  Context* context;
};

struct Array {
  int device;
  std::uint64_t address;
  Context* context;
};

struct Driver {
  std::mutex lock;
  bool initialized = false;
  std::vector<DeviceMemory> devices;
  std::vector<Context*> primary;
  std::vector<int> primary_refs;
  std::vector<Pool*> default_pool;
  std::vector<Pool*> current_pool;
  std::vector<std::uint64_t> graph_reserved;
  std::map<Context*, std::unique_ptr<Context>> contexts;
  std::map<Pool*, std::unique_ptr<Pool>> pools;
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<Graph*, std::unique_ptr<Graph>> graphs;
  std::unordered_map<std::uint64_t, Piece> pieces;
  std::map<std::uint64_t, Physical> physical;
  std::map<std::uint64_t, Mapping> mappings;
  std::map<std::uint64_t, std::uint64_t> reservations;
  std::map<std::uint64_t, Host> host;
  std::map<void*, Array> arrays;
  std::uint64_t next_handle = 0x5000;

  Driver();
};

Driver& driver();
Context* current();                      // NULL = none
std::vector<Context*>& context_stack();  // of the calling thread
void destroy_context(Context* context);  // lock held
bool known_device(int device);

// Stream-ordered memory, lock held.
Pool* pool_of(CUstream stream, int device);
void settle(Pool& pool, std::uint64_t keep);  // gives memory back down to `keep` reserved bytes, where it is idle
Stream* stream_of(CUstream stream);           // NULL for the special streams

}  // namespace fakegpu
