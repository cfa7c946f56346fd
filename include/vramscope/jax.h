/* What the Python side reports about programs that JAX compiles. C ABI, found with dlsym in libvramscope_inject.so. */
#ifndef VRAMSCOPE_JAX_H
#define VRAMSCOPE_JAX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program is about to be compiled, or to be loaded from a cache: its name ("jit_train_step"), whether it computes
 * gradients, and for each argument that is passed to the executable its path in the arguments of the function
 * ("params['dense']['kernel']"), its layer (NULL = none) and its category as in the schema (0: not reported). The caller holds
 * the interpreter's lock. */
void vramscope_jax_compiling(const char* name, int trains, const char* const* arguments, const char* const* layers,
                             const uint8_t* categories, size_t count);

#ifdef __cplusplus
}
#endif
#endif
