// Arrays of a plugin whose allocator is not recorded: on the CPU, or in a CUDA plugin of an unknown version. They are seen from
// PJRT's interface, so the temporaries of programs are missing. A block's address is that of PJRT's object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/jax/pjrt_table.h"
#include "capture/jax/programs.h"

namespace vramscope::capture::jax::pjrt::buffers {

// A buffer exists from now on. NULL is ignored.
void add(const Table& table, const void* buffer);
// It is gone, or its memory is. Ignored if it was before.
void remove(const void* buffer);
// Of a program's arguments, those whose memory has gone to its results.
void remove_donated(const Table& table, const Execute& execute);
void add_results(const Table& table, const Execute& execute, const Program& program);
// What a buffer is, according to a program that takes or returns it. Reported if it is new. A gradient remains one, whatever the
// program that applies it calls it.
void label(const Table& table, const void* buffer, const Argument& argument);

// The program asks where the memory of a buffer is, and then says what is there: vramscope_tag(). That counts, whatever programs
// call it. The thread's last question is remembered.
void note_memory(const void* buffer, std::uint64_t address);
bool tag_memory(std::uint64_t address, record::Category category, const char* name, const char* layer);

}  // namespace vramscope::capture::jax::pjrt::buffers
