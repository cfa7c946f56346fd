// The driver's functions as a program gets them, by one of the ways that exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "capture/cuda/abi.h"

namespace program {

// NOLINTNEXTLINE: the driver's own names
using namespace vramscope::capture::cuda;

struct Api {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) CUresult(*symbol) parameters = nullptr;
#define VS_QUERY(symbol, base, since, per_thread, parameters) CUresult(*symbol) parameters = nullptr;
#include "capture/cuda/hooks.inc"
#define FAKE_ENTRY(symbol, base, since, per_thread, parameters) CUresult(*symbol) parameters = nullptr;
#include "../extra.inc"
};

// "dlsym": libcuda opened, each name looked up. "proc": as the CUDA runtime does it, cuGetProcAddress_v2 found by dlsym, then
// asked for itself, then for everything. "proc1": the same with the first version. "default": dlsym(RTLD_DEFAULT).
// "direct": bound by the dynamic linker; only in the program that is linked so.
// Names that are missing stay NULL. False: no driver, or this way does not exist.
bool load(const std::string& way, Api* api);

}  // namespace program
