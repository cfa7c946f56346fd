// What the recorder knows about a framework: one registration, `kFramework`, in framework.cpp of the framework's folder. The
// build lists the folders that have one (cmake/frameworks.cmake); all other code iterates over that list.
#pragma once

#include <span>

#include "record/recorder.h"

namespace vramscope::capture {

struct Framework {
  record::Framework id;  // its number in traces: Framework{5}, the next that is free; the same on both sides
  const char* word;      // "tensorflow": what settings and the Python side call it
  const char* name;      // "TensorFlow": for people
  const char* library;   // start of the name of the file that is loaded if and only if the framework is
  // The start of its libraries' file names: memory that they allocate from the driver belongs to the framework. They keep pools,
  // and retry with a smaller size if the driver has no more memory.
  std::span<const char* const> files;
  // Installs the hooks in a process that has already loaded the framework. Returns the number of redirected places; 0 means that
  // nothing would be recorded.
  int (*attach_late)();
  // Records the counters that the framework itself keeps for each of its pools. Returns the number of pools; 0 if it is not
  // loaded.
  int (*record_counters)();
  // For a framework that opens plugins at run time: the function that it looks up in each of them, and what it gets instead of
  // what was found. NULL: none. The name starts with "GetP": lookups of other names never get here (cuda/exports.cpp).
  const char* plugin_entry = nullptr;
  void* (*plugin_found)(void* entry) = nullptr;
  // The program says what is at an address that it has just asked the framework for. False unless the framework's blocks have
  // other addresses than their memory, and it is the memory of one of them.
  bool (*tag)(std::uint64_t address, record::Category category, const char* name, const char* layer) = nullptr;
};

std::span<const Framework* const> frameworks();

// NULL if it is not in the list.
const Framework* framework_of(record::Framework id);
const Framework* framework_called(const char* word);
const Framework* framework_with_entry(const char* symbol);

}  // namespace vramscope::capture
