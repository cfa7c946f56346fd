// zstd and XXH3, behind functions that cannot be made to allocate or overrun by what they are given.
#pragma once

#include <cstdint>

#include "support/bytes.h"

namespace vramscope::support {

// Appends one zstd frame to `out`. False if there is no memory for it; `out` is then as before.
bool compress(ByteSpan bytes, int level, Buffer& out);

// True if `bytes` is one zstd frame that fills `into` exactly.
bool decompress(ByteSpan bytes, std::span<std::uint8_t> into);

std::uint64_t checksum(ByteSpan bytes);  // XXH3, 64 bits, seed 0

}  // namespace vramscope::support
