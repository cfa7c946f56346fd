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

#include "base/gen/enums.h"

namespace vramscope::spool {

inline constexpr std::uint64_t kMagic = 0x314c4f4f50535256;  // "VRSPOOL1", little endian
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 64 * 1024;
inline constexpr std::size_t kSegmentBytes = 64 * 1024;
inline constexpr std::size_t kExtentSegments = 16;  // fallocate'd and mapped together
inline constexpr std::size_t kExtentBytes = kExtentSegments * kSegmentBytes;
inline constexpr std::size_t kSlotBytes = 32;  // records are whole slots and never leave their segment
inline constexpr std::size_t kMaxPools = 64;
inline constexpr std::uint64_t kDefaultLimit = std::uint64_t{256} << 20;  // bytes of one process's spool

// Environment that `vramscope run` gives to the process. Absent kEnvSpool: the library stays inert.
inline constexpr const char* kEnvSpool = "VRAMSCOPE_SPOOL";               // folder, mode 0700
inline constexpr const char* kEnvSpoolLimit = "VRAMSCOPE_SPOOL_LIMIT";    // bytes per process
inline constexpr const char* kEnvSpoolLeaves = "VRAMSCOPE_SPOOL_LEAVES";  // bytes of the place that all spools leave free
inline constexpr const char* kEnvClock = "VRAMSCOPE_CLOCK";               // "tsc" or "mono"
inline constexpr const char* kEnvOptions = "VRAMSCOPE_OPTIONS";           // "stacks=python,..." (record/options.h)
inline constexpr const char* kEnvStartup = "VRAMSCOPE_STARTUP";           // startup folder of the Python side; absent: not used

// File names in the spool folder: <pid>-<n>.spool for the data and <pid>-<n>.lock beside it. The process holds a POSIX
// write lock on the lock file as long as it lives: the kernel drops it at death and at exec, and fork does not inherit it.

enum class Clock : std::uint32_t { monotonic_ns = 0, tsc = 1 };

using base::Category;
using base::Framework;
using base::Level;
using base::LossKind;
using base::MarkKind;
using base::Memory;

// What was not recorded, and why: one counter each in the header. The kinds that only the collector can see have none.
inline constexpr std::size_t kLossCounters = 8;

enum PoolFlags : std::uint32_t {
  kPoolOrderExact = 1u << 0,  // sequence numbers are drawn under the allocator's own lock
  kPoolAttributed = 1u << 1,  // op, shape, ... were read
  kPoolSeenLate = 1u << 2,    // the recording started after the pool was in use
  kPoolOfObjects = 1u << 3,   // addresses are those of objects that have the memory, not of the memory
};

// Totals that are correct even if detail was lost. Only the recorder writes them, under the allocator's lock if it has one,
// otherwise with atomic adds. Anyone may read them at any time.
struct Pool {
  std::atomic<std::uint64_t> key;  // the allocator's address, or an artificial key for driver pools; 0 = unused
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
  std::atomic<std::uint64_t> before_bytes;        // live when the recording started (late attach), else 0
  alignas(64) std::atomic<std::uint64_t> allocs;  // first of the line that each event writes
  std::atomic<std::uint64_t> frees;
  std::atomic<std::uint64_t> live_bytes;     // granted
  std::atomic<std::uint64_t> peak_bytes;     // of live_bytes, since start
  std::atomic<std::uint64_t> window_peak;    // of live_bytes, since the last reset_peak()
  std::atomic<std::uint64_t> largest_bytes;  // largest granted
  std::uint64_t reserved[2];
};
static_assert(sizeof(Pool) == 128);

// Three kinds of cache lines: fields that all threads read and that rarely change, the sequence number, which every event
// changes, and fields that change now and then. If they were mixed, each event would need several lines that another core has
// just changed.
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
  std::atomic<std::uint32_t> segment_limit;         // what it can grow to, as far as the process knows
  alignas(64) std::atomic<std::uint64_t> next_seq;  // first number drawn is 1
  alignas(64) std::atomic<std::uint64_t> seals;     // number of seals so far: orders sealed segments by age
  std::atomic<std::uint64_t> lost[kLossCounters];   // records (names for LossKind::names)
  std::atomic<std::uint64_t> free_head;             // the stack of free segments (spool/free_list.h)
  std::atomic<std::uint64_t> given_back;            // number of segments that were ever put on it
  std::uint64_t reserved1[5];
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
  std::atomic<std::uint64_t> seal;       // Header::seals at sealing
  std::uint32_t records;                 // in this segment so far, for counting what is overwritten
  std::atomic<std::uint32_t> next_free;  // index + 1 of the one below it in the stack of free segments, 0 = none
  std::uint32_t reserved[6];
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
  report = 11,          // a reported event of the Python side
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
  std::uint16_t small;  // alloc, oom: string id of the region type; mark: MarkKind; tag: category; report: the trace's event kind
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

struct MarkRecord {
  RecordHead head;
  std::int64_t number;   // step or epoch number, -1 = none
  std::uint32_t name;    // string id
  std::uint32_t detail;  // string id, 0 = none
  std::uint64_t reserved[3];
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

// base::report_shape() gives the number of texts and numbers in use. They are in the order of the event's fields.
struct ReportRecord {
  RecordHead head;
  std::uint64_t number[base::kReportNumbers];
  std::uint32_t text[base::kReportTexts];  // string ids
};

struct ContextRecord {  // a CUDA context was created: what the driver reported right after
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
