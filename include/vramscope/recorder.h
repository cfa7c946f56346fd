/* What a program can say to the recorder inside its own process. C ABI, found with dlsym in libvramscope_inject.so; every call is
 * cheap, never blocks, never allocates after the first use of a name, and does nothing when nothing is recorded. */
#ifndef VRAMSCOPE_RECORDER_H
#define VRAMSCOPE_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 while events are recorded. */
int vramscope_recording(void);

/* Kinds as in schema/trace/schema.json (MarkKind); edge 0 instant, 1 begin, 2 end; number -1 for none; detail may be NULL. */
void vramscope_mark(int kind, int edge, const char* name, int64_t number, const char* detail);

/* What lives at an address. category as in the schema; layer may be NULL. */
void vramscope_tag(uint64_t address, uint64_t bytes, int category, const char* name, const char* layer);

/* A fact about the run. */
void vramscope_setting(const char* key, const char* value);

/* Records an event of a kind that is marked as reported in schema/trace/schema.json: its texts (UTF-8, may be NULL), and its
 * numbers and enumerations, each in the order of its fields. Does nothing if the counts differ from the schema. */
void vramscope_report(int kind, const char* const* texts, int text_count, const uint64_t* numbers, int number_count);

/* The Python side's hooks are installed in a framework ("tensorflow", "pytorch"): they report steps, layers and names. */
void vramscope_python_watches(const char* framework);

/* Where a graph op was made. layer may be NULL. */
void vramscope_op_source(const char* op, const char* file, int line, const char* function, const char* layer);

/* Three functions for a Python program that calls the recorder often, as a tuple: mark(kind, edge, name, number, detail),
 * op_source(op, file, line, function, layer) and report(kind, *texts, *numbers), with texts as str or None. Each returns whether
 * it was called with what it takes, and raises nothing. A Python object; the caller holds the interpreter's lock. */
void* vramscope_direct(void);

/* Records each known framework allocator's own counters at this point (cross-check). Returns how many pools answered. */
int vramscope_check(const char* name);

/* Starts recording in a process that was not started under `vramscope run`: a spool in `spool_folder` for a collector that the
 * caller has started, then the hooks of frameworks that are already loaded. 0 on success; else a reason in `error`. */
int vramscope_attach(const char* spool_folder, uint64_t spool_limit, const char* options, char* error, size_t error_bytes);
/* Puts the original entries back. The library stays loaded. */
void vramscope_detach(void);

struct vramscope_pool_info {
  char name[64];
  char framework[16];
  int32_t device; /* -1 = host */
  int32_t level;  /* 1 driver, 2 tensor */
  int32_t memory; /* schema: Memory */
  int32_t order_exact;
  uint64_t allocs, frees;
  uint64_t current_bytes, peak_bytes, largest_bytes;
  uint64_t region_bytes, region_peak_bytes, limit_bytes, ooms, before_bytes;
};

/* Totals of all pools, newest values, no lock. Returns the number of pools; fills at most `capacity`. */
int vramscope_pools(struct vramscope_pool_info* out, int capacity);

struct vramscope_totals {
  uint64_t current_bytes, peak_bytes, limit_bytes, region_bytes;
  /* Not followed by the recorder: where the caller knows who tells it (include/vramscope/tensorflow.h), he is asked in the same
   * call. */
  uint64_t largest_free_bytes;
  uint64_t (*largest_free)(uint64_t allocator); /* may be NULL */
  uint64_t allocator;
};

/* The same of one pool, by its place in the list above, for calls in a training loop. 0, or -1 when nothing is recorded. */
int vramscope_pool_totals(int pool, struct vramscope_totals* out);
/* The peak that memory_info reports starts again from the current value. -1 if there is no such pool. */
int vramscope_reset_peak(const char* pool_name);

#ifdef __cplusplus
}
#endif
#endif
