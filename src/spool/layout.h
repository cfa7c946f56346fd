// The memory that the recorder (inside the user's process) and the collector (outside) share.
//
// One spool file per process: a header page area, then segments of 64 KiB that are added in extents of 1 MiB.
// A segment belongs to one thread at a time, which appends records and publishes them with one release store of
// `committed`; the collector reads up to `committed` and gives sealed segments back. Nothing in this file allocates,
// locks or waits, and everything in it is plain data at fixed offsets: the two sides may be built by different compilers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramscope::spool {

inline constexpr std::uint64_t kMagic = 0x314c4f4f50535256;  // "VRSPOOL1", little endian
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64 * 1024;
inline constexpr std::size_t kSegmentBytes = 64 * 1024;
inline constexpr std::size_t kExtentSegments = 16;  // fallocate'd and mapped together
inline constexpr std::size_t kExtentBytes = kExtentSegments * kSegmentBytes;
inline constexpr std::size_t kSlotBytes = 32;  // records are whole slots and never leave their segment
inline constexpr std::size_t kMaxPools = 64;

// Environment that `vramscope run` gives to the process. Absent kEnvSpool: the library stays inert.
inline constexpr const char* kEnvSpool = "VRAMSCOPE_SPOOL";             // folder, mode 0700
inline constexpr const char* kEnvSpoolLimit = "VRAMSCOPE_SPOOL_LIMIT";  // bytes per process
inline constexpr const char* kEnvClock = "VRAMSCOPE_CLOCK";             // "tsc" or "mono"
inline constexpr const char* kEnvOptions = "VRAMSCOPE_OPTIONS";         // "stacks=python,..." (record/options.h)

// File names in the spool folder: <pid>-<n>.spool for the data and <pid>-<n>.lock beside it. The process holds a POSIX
// write lock on the lock file as long as it lives: the kernel drops it at death and at exec, and fork does not inherit it.

enum class Clock : std::uint32_t { monotonic_ns = 0, tsc = 1 };

// What was not recorded, and why. One counter each in the header; the collector turns them into `lost` events.
enum class Loss : std::uint32_t {
  overwritten = 0,  // spool limit reached: the oldest sealed segment was reused before it was drained
  no_segment = 1,   // no segment could be had at all (disk full, limit below the number of threads)
  reentered = 2,    // an event inside a signal handler or inside the recorder itself
  names = 3,        // a name, shape or stack could not be interned (table full)
  kCount = 8,
};

enum class Level : std::uint8_t { driver = 1, tensor = 2 };

// What kind of memory a pool hands out.
enum class Memory : std::uint8_t { device = 0, managed = 1, pinned = 2, host = 3, virtual_only = 4, array = 5 };

enum class Framework : std::uint8_t { none = 0, tensorflow = 1, pytorch = 2, jax = 3, cuda = 4 };

enum PoolFlags : std::uint32_t {
  kPoolOrderExact = 1u << 0,  // sequence numbers are drawn under the allocator's own lock
  kPoolAttributed = 1u << 1,  // op, shape, ... were read
  kPoolSeenLate = 1u << 2,    // recording began after the pool was in use
};

// Totals that are right even where detail was lost. Written by the recorder only, under the allocator's lock where there is
// one, else with atomic adds; read by anybody at any time.
struct Pool {
  std::atomic<std::uint64_t> key;  // the allocator's address, or a made-up key for driver pools; 0 = unused
  std::uint32_t name;              // string id
  std::int32_t device;             // ordinal in the process, -1 = host
  Level level;
  Memory memory;
  Framework framework;
  std::uint8_t reserved0;
  std::atomic<std::uint32_t> flags;  // PoolFlags
  std::atomic<std::uint64_t> region_bytes;
  std::atomic<std::uint64_t> region_peak;
  std::atomic<std::uint64_t> limit_bytes;  // 0 = unknown
  std::atomic<std::uint64_t> ooms;
  std::atomic<std::uint64_t> before_bytes;        // live when recording began (late attach), else 0
  alignas(64) std::atomic<std::uint64_t> allocs;  // first of the line that each event writes
  std::atomic<std::uint64_t> frees;
  std::atomic<std::uint64_t> live_bytes;     // granted
  std::atomic<std::uint64_t> peak_bytes;     // of live_bytes, since start
  std::atomic<std::uint64_t> window_peak;    // of live_bytes, since the last reset_peak()
  std::atomic<std::uint64_t> largest_bytes;  // largest granted
  std::uint64_t reserved[2];
};
static_assert(sizeof(Pool) == 128);

// Three kinds of cache lines: what everybody reads and hardly anybody writes; the sequence number, which every event writes; and
// what is written now and then. Mixed, each event would cost a thread several lines that another one has just changed.
struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t pid;
  Clock clock;
  std::uint64_t ticks0;  // one simultaneous reading of all three clocks
  std::uint64_t monotonic0_ns;
  std::uint64_t realtime0_ns;
  std::atomic<std::uint32_t> stop;           // set by the collector: record nothing more
  std::atomic<std::uint32_t> segment_count;  // fallocate'd so far
  std::atomic<std::uint32_t> pool_count;
  std::uint32_t reserved0;
  alignas(64) std::atomic<std::uint64_t> next_seq;  // first number drawn is 1
  alignas(64) std::atomic<std::uint64_t> seals;     // number of seals so far: orders sealed segments by age
  std::atomic<std::uint64_t> lost[static_cast<std::size_t>(Loss::kCount)];  // records (names for Loss::names)
  std::uint64_t reserved1[7];
  alignas(128) Pool pools[kMaxPools];
  char command[4096];  // /proc/self/cmdline as it was, NUL separated, NUL padded
  std::uint32_t command_bytes;
};
static_assert(offsetof(Header, stop) == 48 && offsetof(Header, next_seq) == 64);
static_assert(sizeof(Header) <= kHeaderBytes);

// owned: one thread appends. sealed: full, to be drained. reading: the collector has it. A thread that finds no free segment
// takes the oldest sealed one (CAS sealed -> owned) and counts what it overwrites.
enum class SegmentState : std::uint32_t { free = 0, owned = 1, sealed = 2, reading = 3 };

struct SegmentHeader {
  std::atomic<SegmentState> state;
  std::atomic<std::uint32_t> committed;   // bytes from the start of the segment that hold whole records; starts at 64
  std::atomic<std::uint64_t> generation;  // +1 each time a thread takes the segment: a reader's copy is good if unchanged
  std::uint32_t thread;                   // tid of the owner
  std::uint32_t reserved0;
  std::atomic<std::uint64_t> seal;  // Header::seals at sealing
  std::uint32_t records;            // in this segment so far, for counting what is overwritten
  std::uint32_t reserved[7];
};
static_assert(sizeof(SegmentHeader) == 64);

enum class RecordKind : std::uint8_t {
  none = 0,
  alloc = 1,
  free = 2,
  region = 3,
  mark = 4,
  tag = 5,
  stats = 6,
  oom = 7,
  setting = 8,
  context = 9,
  free_cancelled = 10,  // the free announced just before with this address failed
  // Definitions: seq 0, valid for the whole process, may arrive after their first use.
  string = 32,
  stack = 33,
  code = 34,       // a Python code object
  module = 35,     // a mapped ELF file
  op_source = 36,  // graph op -> source line
};

enum RecordFlags : std::uint8_t {
  kFlagExtended = 1u << 0,     // AllocExtra follows / FreeExtra follows
  kFlagBegin = 1u << 1,        // mark: begins
  kFlagEnd = 1u << 2,          // mark: ends (neither: an instant)
  kFlagFinal = 1u << 3,        // oom: the caller asked for retries and got none (a failure, not an optional request)
  kFlagReturned = 1u << 4,     // region: given back (else grown)
  kFlagAsync = 1u << 5,        // stream-ordered
  kFlagUnknownSize = 1u << 6,  // alloc: granted could not be read and equals requested
  kFlagImported = 1u << 7,     // alloc: memory of another process, do not count
};

struct RecordHead {
  std::uint64_t seq;
  std::uint64_t ticks;
  RecordKind kind;
  std::uint8_t flags;
  std::uint16_t slots;  // length of the whole record
  std::uint8_t pool;    // index into Header::pools
  std::uint8_t dtype;   // alloc, oom: the framework's enum, 0 = unknown
  std::uint16_t small;  // alloc, oom: string id of the region type; mark: MarkKind; tag: category
};
static_assert(sizeof(RecordHead) == 24);

// alloc and oom (oom: address 0, granted 0).
struct AllocRecord {
  RecordHead head;
  std::uint64_t address;
  std::uint64_t requested;
  std::uint64_t granted;
  std::int64_t step;    // the framework's step id: groups one function run, numbers nothing
  std::uint32_t op;     // string id
  std::uint32_t shape;  // string id
};
static_assert(sizeof(AllocRecord) == 2 * kSlotBytes);

// Follows an AllocRecord with kFlagExtended.
struct AllocExtra {
  std::uint64_t stack;  // id of a stack definition (content hash), 0 = none
  std::uint64_t stream;
  std::uint32_t owner;     // string id of the module that called the driver, 0 = unknown
  std::uint32_t physical;  // reserved
  std::uint64_t handle;    // VMM handle or array handle
};
static_assert(sizeof(AllocExtra) == kSlotBytes);

struct FreeRecord {
  RecordHead head;
  std::uint64_t address;
};
static_assert(sizeof(FreeRecord) == kSlotBytes);

struct FreeExtra {  // follows a FreeRecord with kFlagExtended
  std::uint64_t stream;
  std::uint64_t reserved[3];
};

struct RegionRecord {
  RecordHead head;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t reserved[3];
};

enum class MarkKind : std::uint16_t {
  phase = 1,
  epoch = 2,
  step = 3,
  batch = 4,
  layer = 5,
  scope = 6,
  check = 7,
  function = 8,
  process = 9,
  tape = 10,
  retrace = 11,
};

struct MarkRecord {
  RecordHead head;
  std::int64_t number;   // step or epoch number, -1 = none
  std::uint32_t name;    // string id
  std::uint32_t detail;  // string id, 0 = none
  std::uint64_t reserved[3];
};

enum class Category : std::uint8_t {
  unknown = 0,
  parameter = 1,
  gradient = 2,
  optimizer_state = 3,
  activation = 4,
  input = 5,
  temporary = 6,
  xla_temporary = 7,
  constant = 8,
  buffer = 9,
  workspace = 10,
};

struct TagRecord {
  RecordHead head;  // small: Category
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t name;   // string id: variable path
  std::uint32_t layer;  // string id, 0 = none
  std::uint64_t reserved[2];
};

struct StatsRecord {  // the framework's own counters at this sequence number
  RecordHead head;
  std::uint64_t allocs;
  std::uint64_t in_use;
  std::uint64_t peak;
  std::uint64_t largest;
  std::uint64_t limit;
  std::uint64_t pool_bytes;
  std::uint64_t reserved[3];
};

struct SettingRecord {
  RecordHead head;
  std::uint32_t key;  // string ids
  std::uint32_t value;
};

struct ContextRecord {  // a CUDA context came into being: what the driver said right after
  RecordHead head;
  std::uint64_t device;
  std::uint64_t free_bytes;
  std::uint64_t total_bytes;
  std::uint64_t context;
  std::uint64_t reserved;
};

struct StringRecord {  // bytes follow
  RecordHead head;
  std::uint32_t id;
  std::uint32_t bytes;
};

struct StackRecord {  // `count` Frame entries follow, innermost first
  RecordHead head;
  std::uint64_t id;
  std::uint32_t count;
  std::uint32_t truncated;  // frames left out at the outer end
};
struct Frame {  // Python: code id and line; native: code 0 and an address
  std::uint32_t code;
  std::uint32_t line;
  std::uint64_t address;
};

struct CodeRecord {
  RecordHead head;
  std::uint32_t id;
  std::uint32_t function;  // string ids
  std::uint32_t file;
  std::uint32_t first_line;
};

struct ModuleRecord {
  RecordHead head;
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint32_t path;      // string ids
  std::uint32_t build_id;  // hexadecimal
};

struct OpSourceRecord {
  RecordHead head;
  std::uint32_t op;  // string ids
  std::uint32_t file;
  std::uint32_t function;
  std::uint32_t line;
  std::uint32_t layer;
  std::uint32_t reserved;
};

template <typename Record>
inline constexpr std::uint16_t slots_of = static_cast<std::uint16_t>((sizeof(Record) + kSlotBytes - 1) / kSlotBytes);

}  // namespace vramscope::spool
