// What scenarios have in common. A scenario is a function that uses the driver through `cu` and reports to `truth` what it did,
// and a row in the table at the end of its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api.h"
#include "truth.h"

namespace program {

extern Api cu;
extern Truth truth;

struct Scenario {
  const char* name;
  void (*run)();
};
std::span<const Scenario> kinds_of_memory();
std::span<const Scenario> whole_programs();

// The number after the scenario's name, counted from 0.
int number(std::size_t index, int otherwise);

[[noreturn]] void die(const char* file, int line, const char* what);
#define MUST(call) \
  if ((call) != 0) die(__FILE__, __LINE__, #call)
#define CHECK(condition) \
  if (!(condition)) die(__FILE__, __LINE__, #condition)

CUcontext use_device(int device);
CUdeviceptr allocate(std::uint64_t bytes, const char* kind = "linear");  // 0 if the driver refuses
void release(CUdeviceptr address, std::uint64_t bytes, const char* kind = "linear");
void hold(std::uint64_t bytes);

}  // namespace program
