// gzip for browsers, which read no zstd from a file.
#pragma once

#include <string>
#include <string_view>

namespace vramscope::serve {

// `level` 1 (quick) to 9 (small).
std::string gzip(std::string_view data, int level);
std::string base64(std::string_view data);

}  // namespace vramscope::serve
