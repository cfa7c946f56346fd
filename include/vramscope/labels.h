/* What the Python side reports about Python code, so that the recorder can read labels from the stack of each allocation without
 * running any code of ours in between. C ABI, found with dlsym in libvramscope_inject.so; every function may be called at any
 * time. */
#ifndef VRAMSCOPE_LABELS_H
#define VRAMSCOPE_LABELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A callable that calls `before(*args, **kwargs)`, then `original(*args, **kwargs)`, then `after(token, ok, result, *args,
 * **kwargs)`, where the token is what `before` returned. It has no frame, and apart from being called, it behaves like the
 * original. Python objects; `before` and `after` may be None. The caller holds the interpreter's lock. */
void* vramscope_around(void* original, void* before, void* after);

/* NOLINTNEXTLINE(readability-identifier-naming): the names of a C interface */
enum vramscope_role {
  VRAMSCOPE_ROLE_LAYER_CALL = 1, /* a method of a network layer; self is variable number `self_slot` of its frames */
  VRAMSCOPE_ROLE_PHASE = 2, /* `phase`: 1 input, 2 forward, 3 backward, 4 optimizer, 5 save, 6 compile, 7 checkpointed forward */
  VRAMSCOPE_ROLE_RECOMPUTE = 3, /* layers inside it run again during backward; `text` names it */
  VRAMSCOPE_ROLE_OP = 4         /* `text` names what is being done */
};

/* Assigns a meaning to a code object (by its address, id() in Python) on the stack. The caller keeps the code object alive.
 * Returns 1 on success, 0 if the table is full. */
int vramscope_watch_code(uint64_t code, int role, int phase, int self_slot, int self_in_cell, const char* text);

/* Names network layers, "block.0.attention/Linear", by the addresses of their Python objects; "" for one that was freed. */
void vramscope_name_layers(const uint64_t* objects, const char* const* names, size_t count);
/* How many times an unnamed layer has been encountered so far. */
uint64_t vramscope_unnamed_layers(void);

/* A place in the program and the place that called it (0 = none): returns its number, or 0 if there is no room. For
 * vramscope_name_lines. */
uint32_t vramscope_add_place(const char* file, const char* function, uint32_t line, uint32_t outer);
/* Generated code: which part of the network each line serves, "block.0/Linear", or ".0/Linear" for a part of the
 * layer whose call is on the stack (NULL = that layer itself), and for which place. A count of 0 forgets the code object, which
 * is about to be freed. */
void vramscope_name_lines(uint64_t code, const uint32_t* lines, const char* const* parts, const uint32_t* places, size_t count);

/* vramscope_tag for many addresses of one category. An address of 0 is skipped; layers may be NULL. */
void vramscope_tag_many(const uint64_t* addresses, const uint64_t* bytes, const char* const* names, const char* const* layers,
                        size_t count, int category);

/* One training step has ended. The next one starts with the next allocation for input or forward. A negative number: from now on,
 * the steps are marked elsewhere. */
void vramscope_step_done(int64_t number);

/* The calling thread's Python stack as Python sees it, innermost frame (the caller's) first. Returns 1 if the recorder reads
 * the same stack; otherwise it turns Python stacks off, with one line on stderr, and returns 0. -1 if they are already off. */
int vramscope_verify_stack(const uint64_t* codes, const uint32_t* lines, size_t count);

#ifdef __cplusplus
}
#endif
#endif
