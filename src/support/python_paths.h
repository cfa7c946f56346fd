// Who a Python file belongs to, judged by its path.
#pragma once

#include <string_view>

namespace vramscope::support {

// Installed with Python or by a package manager, rather than written by the user.
bool is_installed_python(std::string_view file);

// Written by TorchInductor, which names a file after the hash of what is in it.
bool is_generated_python(std::string_view file);

}  // namespace vramscope::support
