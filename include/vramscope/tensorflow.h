/* The counters of a TensorFlow allocator, read in TensorFlow's own process. C ABI of libvramscope_tfops.so, which also
 * registers the ops VramscopeBytesInUse, VramscopeMaxBytesInUse, VramscopeBytesLimit and VramscopeAllocator when it is loaded
 * with tf.load_op_library. The last one gives the address that the functions below take; it is good as long as TensorFlow's
 * devices live. */
#ifndef VRAMSCOPE_TENSORFLOW_H
#define VRAMSCOPE_TENSORFLOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VRAMSCOPE_TF_UNKNOWN UINT64_MAX

struct vramscope_tf_stats {
  uint64_t current_bytes, peak_bytes;
  uint64_t limit_bytes, pool_bytes; /* 0 = the allocator does not say */
  uint64_t largest_free_bytes;      /* VRAMSCOPE_TF_UNKNOWN = it does not say */
  uint64_t allocs, largest_bytes;
};

/* 0 read; 1 the allocator keeps no statistics; 2 this TensorFlow release offers no way to them. As the two below: one thread at a
 * time (in Python: while holding the interpreter lock). */
int vramscope_tf_read_stats(uint64_t allocator, struct vramscope_tf_stats* out);
/* Of vramscope_tf_read_stats, only that field. */
uint64_t vramscope_tf_largest_free(uint64_t allocator);
/* Peak = current and counts = 0, as tf.config.experimental.reset_memory_stats does. Same answers. */
int vramscope_tf_clear_stats(uint64_t allocator);

#ifdef __cplusplus
}
#endif
#endif
