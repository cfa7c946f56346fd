// A framework for the tests: an allocator with counters of its own, and ops that allocate through it.
#include <stddef.h>
#include <stdlib.h>

struct header {
  size_t bytes;
  size_t unused;
};

static size_t in_use, peak, allocations;

void* toy_allocate(const char* op, size_t bytes) {
  (void)op;
  struct header* block = malloc(sizeof *block + bytes);
  if (block == NULL) return NULL;
  block->bytes = bytes;
  in_use += bytes;
  allocations += 1;
  if (in_use > peak) peak = in_use;
  return block + 1;
}

void toy_release(void* memory) {
  struct header* block = (struct header*)memory - 1;
  in_use -= block->bytes;
  free(block);
}

// What Python calls: allocation happens inside the library, as in any framework.
void* toy_run(const char* op, size_t bytes) { return toy_allocate(op, bytes); }
void toy_drop(void* memory) { toy_release(memory); }

size_t toy_size(const void* memory) { return ((const struct header*)memory - 1)->bytes; }
size_t toy_in_use(void) { return in_use; }
size_t toy_peak(void) { return peak; }
size_t toy_allocations(void) { return allocations; }
