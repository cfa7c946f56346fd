/* The counters of a TensorFlow allocator, read in TensorFlow's own process. C ABI of libvramscope_tfops.so, which also
 * registers the ops VramscopeBytesInUse, VramscopeMaxBytesInUse, VramscopeBytesLimit and VramscopeAllocator when it is loaded
 * with tf.load_op_library. The last one returns the address that the functions below take; it is valid as long as TensorFlow's
 * devices exist. */
#ifndef VRAMSCOPE_TENSORFLOW_H
#define VRAMSCOPE_TENSORFLOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VRAMSCOPE_TF_UNKNOWN UINT64_MAX

struct vramscope_tf_stats {
  uint64_t current_bytes, peak_bytes;
  uint64_t limit_bytes, pool_bytes; /* 0 = unknown */
  uint64_t largest_free_bytes;      /* VRAMSCOPE_TF_UNKNOWN = unknown */
  uint64_t allocs, largest_bytes;
};

/* Returns 0 on success, 1 if the allocator keeps no statistics, 2 if this TensorFlow release does not expose them. Like the two
 * functions below: one thread at a time (in Python: while holding the interpreter lock). */
int vramscope_tf_read_stats(uint64_t allocator, struct vramscope_tf_stats* out);
/* Like vramscope_tf_read_stats, but only this field. */
uint64_t vramscope_tf_largest_free(uint64_t allocator);
/* Sets the peak to the current value and the counts to 0, like tf.config.experimental.reset_memory_stats. Same results. */
int vramscope_tf_clear_stats(uint64_t allocator);

#ifdef __cplusplus
}
#endif
#endif
