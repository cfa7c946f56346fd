// The error of a program that cannot start another thread.
#pragma once

#include <system_error>

#include <fmt/format.h>

#include "support/result.h"

namespace vramscope::cli {

inline auto no_thread(const std::system_error& error) {
  return fail(fmt::format("{}; raise the limit on processes (ulimit -u)", error.what()));
}

}  // namespace vramscope::cli
