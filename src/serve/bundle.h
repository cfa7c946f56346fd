// The built user interface, one HTML file inside the program.
#pragma once

#include <string_view>

#include "support/result.h"

namespace vramscope::serve {

// An error if the program was built before the user interface.
Result<std::string_view> bundle();

}  // namespace vramscope::serve
