// Sends one request to somebody else's server.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace vramscope::serve::http {

struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string path = "/";
};

// "http://host:4318/path"; without a port or a path, those of `defaults`. There is no encryption: https is refused.
Result<Url> parse_url(std::string_view text, const Url& defaults);

// Fails if the server cannot be reached, has not answered after `timeout`, or answers with another status than 2xx.
Status post(const Url& url, std::string_view type, std::string_view body, std::chrono::milliseconds timeout);

// Whether the first line of an answer, "HTTP/1.1 200 OK", says that the request was accepted.
Status check_status(std::string_view line);

}  // namespace vramscope::serve::http
