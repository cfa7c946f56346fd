// The exported definitions, found before PyTorch's own because this library is loaded first.
#pragma once

#include <cstdint>

#define HOOK(name, library, result, symbol, parameters, arguments) \
  extern "C" __attribute__((visibility("default"))) result vramscope_torch_##name parameters __asm__(symbol);
#include "capture/torch/hooks.inc"
#undef HOOK
