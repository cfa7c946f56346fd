// Parameters of a request: text from outside, checked here and nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/gen/rpc.h"

namespace vramscope::serve {

inline constexpr std::size_t kLongestParameter = 4096;

// A missing text is empty; a missing number is an error.
Status read_param(const Params& params, std::string_view name, std::string& out);
Status read_param(const Params& params, std::string_view name, std::uint64_t& out);
Status read_param(const Params& params, std::string_view name, double& out);

// Splits "a=1&b=x%20y". Invalid percent escapes stay as they are.
Params parse_query(std::string_view query);

}  // namespace vramscope::serve
