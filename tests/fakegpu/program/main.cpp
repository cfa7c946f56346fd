// A CUDA-driver program without CUDA: cuda_program WAY SCENARIO [NUMBER...]
//
// WAY: how it finds the driver (api.h). It prints what it did (truth.h) and returns 0 unless the driver surprised it.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "scenario.h"

namespace program {

Api cu;
Truth truth;

namespace {

std::vector<int> numbers;

const Scenario* find(std::string_view name) {
  for (const auto scenarios : {kinds_of_memory(), whole_programs()})
    for (const Scenario& scenario : scenarios)
      if (scenario.name == name) return &scenario;
  return nullptr;
}

int run(int count, char** arguments) {
  if (count < 3 || !load(arguments[1], &cu)) return 4;
  for (int i = 3; i < count; ++i) numbers.push_back(std::atoi(arguments[i]));
  MUST(cu.cuInit(0));
  const Scenario* const scenario = find(arguments[2]);
  if (scenario == nullptr) return 5;
  scenario->run();
  truth.print();
  return 0;
}

}  // namespace

int number(std::size_t index, int otherwise) { return index < numbers.size() ? numbers[index] : otherwise; }

void die(const char* file, int line, const char* what) {
  std::fprintf(stderr, "cuda_program: %s:%d: %s\n", file, line, what);
  std::exit(3);
}

CUcontext use_device(int device) {
  CUcontext context = nullptr;
  MUST(cu.cuDevicePrimaryCtxRetain(&context, device));
  MUST(cu.cuCtxSetCurrent(context));
  return context;
}

CUdeviceptr allocate(std::uint64_t bytes, const char* kind) {
  CUdeviceptr address = 0;
  if (cu.cuMemAlloc_v2(&address, bytes) != 0) {
    truth.refused(kind);
    return 0;
  }
  truth.allocated(kind, bytes);
  return address;
}

void release(CUdeviceptr address, std::uint64_t bytes, const char* kind) {
  if (cu.cuMemFree_v2(address) == 0 && address != 0) truth.freed(kind, bytes);
}

}  // namespace program

int main(int count, char** arguments) { return program::run(count, arguments); }
