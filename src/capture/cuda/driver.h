// The real driver: its functions by their exact exported names, found when they are first needed.
//
// libcuda is never linked and never loaded by us. Once the program has loaded it, we hold a reference, because programs keep
// function pointers forever. A function that this driver does not have returns kNotFound.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/cuda/abi.h"

namespace vramscope::capture::cuda {

enum class Function : std::uint16_t {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) symbol,
#include "capture/cuda/hooks.inc"
#define VS_QUERY(symbol, base, since, per_thread, parameters) symbol,
#include "capture/cuda/hooks.inc"
  kCount
};

// The real address, or that of a function which returns kNotFound. Never NULL.
void* real_function(Function function);

// Looks for the driver and binds all functions. False if the program has not loaded it.
bool bind_driver();

// The wrapper that has exactly the signature of the driver's function at `real`; NULL if it is not wrapped.
void* wrapper_of(const void* real);
// Whether there is a wrapper for this exported name.
bool is_hooked(const char* symbol);
// Whether this address is code of the driver itself.
bool is_driver_code(const void* address);

// Signatures, as types.
namespace signature {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) using symbol = CUresult parameters;
#define VS_QUERY(symbol, base, since, per_thread, parameters) using symbol = CUresult parameters;
#include "capture/cuda/hooks.inc"
}  // namespace signature

}  // namespace vramscope::capture::cuda

// The wrappers: hidden, so that taking their address cannot find another function of that name. The public names in exports.cpp
// jump here.
extern "C" {
#define VS_HOOK(symbol, base, since, per_thread, role, parameters, what) vramscope::capture::cuda::signature::symbol vs_##symbol;
#include "capture/cuda/hooks.inc"
}

// VS_REAL(cuMemAlloc_v2)(&address, bytes)
#define VS_REAL(symbol) \
  (reinterpret_cast<signature::symbol*>(::vramscope::capture::cuda::real_function(::vramscope::capture::cuda::Function::symbol)))
