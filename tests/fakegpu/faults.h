// Chosen failures and latency, from the environment:
//
//   FAKEGPU_FAIL=cuMemAlloc_v2:3:2,cuMemFree_v2:1:999   the third cuMemAlloc_v2 returns 2 (out of memory), ...
//   FAKEGPU_FAIL=cuMemAlloc_v2:3+:2                     the third and all later ones
//   FAKEGPU_LATENCY=cuMemAlloc_v2=80000,*=1000          nanoseconds that a call takes (busy)
#pragma once

namespace fakegpu {

// Waits, and returns the code the call must return, 0 to go on.
int fault(const char* name);

}  // namespace fakegpu

#define FAKE_CALL(name) \
  if (const int code = fakegpu::fault(#name)) return code
