// zstd and XXH3. No input can make these functions allocate without limit or write out of bounds.
#pragma once

#include <array>
#include <cstdint>

#include "support/bytes.h"

namespace vramscope::support {

// Appends one zstd frame to `out`. False if there is no memory for it; `out` is then as before.
bool compress(ByteSpan bytes, int level, Buffer& out);

// True if `bytes` is one zstd frame that fills `into` exactly.
bool decompress(ByteSpan bytes, std::span<std::uint8_t> into);

std::uint64_t checksum(ByteSpan bytes);  // XXH3, 64 bits, seed 0

using WideChecksum = std::array<std::uint64_t, 2>;
// The same with a secret: without the key, nobody can forge a valid checksum for changed bytes, or find two contents with the
// same checksum. Without a secret, both are easy.
using ChecksumKey = std::array<std::uint8_t, 192>;
std::uint64_t checksum(ByteSpan bytes, const ChecksumKey& key);
WideChecksum wide_checksum(ByteSpan bytes, const ChecksumKey& key);  // 128 bits: identifies the content

}  // namespace vramscope::support
