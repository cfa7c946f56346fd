// Records what the hooks capture: cheaply, in the user's process, without allocating, locking or waiting.
//
// Every function may be called from any thread at any time, even before the recorder is set up and after it is shut down. If
// nothing can be recorded, it does nothing. Calls made while the same thread is inside the recorder are dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spool/layout.h"

namespace vramscope::record {

using spool::Category;
using spool::Framework;
using spool::Level;
using spool::MarkKind;
using spool::Memory;

// True if events are recorded. The first call in a process (and in the child after a fork) sets up the spool, so a process that
// never allocates leaves nothing behind. Normally one load and one compare.
bool active();

// Which recording of this process is under way: 1 for the first. 0 if nothing is recorded.
std::uint64_t recording_number();

// Id of a text, which is defined in the spool on first use. 0 for the empty text, or if nothing is recorded.
std::uint32_t intern(const char* text, std::size_t bytes);
std::uint32_t intern(const char* text);  // NUL terminated, NULL = empty

struct PoolKey {
  std::uint64_t key;  // the allocator's address; driver pools: any value that is unique to them
  const char* name;
  std::int32_t device;  // -1 = host
  Level level;
  Memory memory;
  Framework framework;
  // The state when the pool is created. Ignored if the pool exists: it may have been used since the caller read these.
  std::uint32_t flags = 0;         // spool::PoolFlags
  std::uint64_t limit_bytes = 0;   // 0 = unknown
  std::uint64_t before_bytes = 0;  // already live: late attach, or a forked child
};
inline constexpr std::uint8_t kNoPool = 255;
// Finds or creates. kNoPool if nothing is recorded or the table is full.
std::uint8_t pool(const PoolKey& key);
// Only finds. The common case is one compare.
std::uint8_t find_pool(std::uint64_t key);
spool::Pool* pool_totals(std::uint8_t pool);  // NULL for kNoPool
std::uint32_t pool_count();
const char* pool_name(std::uint8_t pool);  // cut at 63 characters

struct AllocEvent {
  std::uint8_t pool = kNoPool;
  std::uint8_t flags = 0;  // spool::RecordFlags; alloc() sets kFlagExtended if it is needed
  std::uint8_t dtype = 0;
  std::uint16_t region = 0;  // string id
  std::uint32_t op = 0;      // string ids
  std::uint32_t shape = 0;
  std::int64_t step = 0;
  std::uint64_t seq = 0;  // 0 = draw now
  std::uint64_t address = 0;
  std::uint64_t requested = 0;
  std::uint64_t granted = 0;
  std::uint64_t stack = 0;
  std::uint64_t stream = 0;
  std::uint64_t handle = 0;
  std::uint32_t owner = 0;  // string id
  bool count = true;        // false: the caller has updated the totals, under the allocator's lock
};
void alloc(const AllocEvent& event);
void oom(const AllocEvent& event);  // flags: kFlagFinal for a failure

// `bytes` (granted) is for the running totals; kUnknown looks nothing up and leaves the live total to the collector.
struct FreeEvent {
  std::uint8_t pool = kNoPool;
  std::uint8_t flags = 0;
  std::uint64_t seq = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  bool count = true;
};
void free(const FreeEvent& event);
// The free just recorded for this address has failed, and the block is still live. Restores the totals.
void cancel_free(const FreeEvent& event);

void region(std::uint8_t pool, std::uint64_t address, std::uint64_t bytes, bool returned);
void mark(MarkKind kind, std::uint8_t edge_flags, const char* name, std::int64_t number, const char* detail);
void tag(std::uint64_t address, std::uint64_t bytes, Category category, const char* name, const char* layer);
void tag(std::uint64_t address, std::uint64_t bytes, Category category, std::uint32_t name, std::uint32_t layer);  // string ids
void setting(const char* key, const char* value);
// An event of a reported kind (schema/trace/schema.json), with the number of texts and numbers that base::report_shape() gives. A
// text may be NULL.
void report(std::uint16_t kind, const char* const* texts, const std::uint64_t* numbers);
void context(std::int64_t device, std::uint64_t free_bytes, std::uint64_t total_bytes, std::uint64_t context);
void stats(std::uint8_t pool, const spool::StatsRecord& counters);  // head is filled here
void op_source(const char* op, const char* file, std::uint32_t line, const char* function, const char* layer);

// Running totals, to be called inside the allocator's lock with count = false in the event.
void count_alloc(spool::Pool& pool, std::uint64_t granted);
void count_free(spool::Pool& pool, std::uint64_t granted);
// Call before an event: fetches the cache lines that it will change, which another core used last, while the thread is still on
// its way to the allocator's lock.
struct AllocatorCall;
void expect_event(const AllocatorCall& call);

// True while this thread runs recorder code or a forwarded call whose own events are not wanted.
bool busy();
// Marks the thread busy. Returns false if it was already. No destructor: nothing may have to be unwound in the user's process.
bool enter();
void leave();

// Call before main: remembers which file stderr is. Messages are never written to another one.
void remember_stderr();
// Prints one line on stderr, once per process for each `what` (a string literal): what is not recorded, and what to do.
void say_once(const char* what, const char* remedy);

// Reserves a definition record of variable length, for stacks, code objects and modules. NULL if there is no room. Fill the bytes
// after the head, then call publish().
spool::RecordHead* reserve(spool::RecordKind kind, std::size_t bytes);
void publish(spool::RecordHead* record);

}  // namespace vramscope::record
