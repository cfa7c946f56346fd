// gzip, for browsers and tools that cannot read zstd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace vramscope::support {

// `level` 1 (fast) to 9 (small).
std::string gzip(std::string_view data, int level);
// Unpacks untrusted bytes. An error if they are not gzip, are cut off, or would unpack to more than `most` bytes.
Result<std::string> gunzip(std::string_view packed, std::uint64_t most);
std::string base64(std::string_view data);

}  // namespace vramscope::support
