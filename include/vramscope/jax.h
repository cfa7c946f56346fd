/* What the Python side reports about programs that JAX compiles. C ABI, found with dlsym in libvramscope_inject.so. */
#ifndef VRAMSCOPE_JAX_H
#define VRAMSCOPE_JAX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array that is passed to an executable, or that it returns: its path in the arguments of the function
 * ("params['dense']['kernel']"), its layer (NULL = none) and its category as in the schema (0: not reported). */
struct vramscope_jax_value {
  const char* path;
  const char* layer;
  uint8_t category;
};

/* A program is about to be compiled, or to be loaded from a cache: its name ("jit_train_step"), whether it computes
 * gradients, and what it is passed and returns. The caller holds the interpreter's lock. */
void vramscope_jax_compiling(const char* name, int trains, const struct vramscope_jax_value* arguments, size_t argument_count,
                             const struct vramscope_jax_value* results, size_t result_count);

#ifdef __cplusplus
}
#endif
#endif
