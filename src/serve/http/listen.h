// Opens the socket that a server listens on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace vramscope::serve::http {

struct Listening {
  int fd = -1;  // does not block
  std::uint16_t port = 0;
};

// Port 0 selects a free one. `port_option` is how the user chose the port; an error names it.
Result<Listening> open_listening(const std::string& host, std::uint16_t port, std::string_view port_option);

}  // namespace vramscope::serve::http
