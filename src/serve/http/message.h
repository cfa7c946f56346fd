// Requests and responses of HTTP/1.1, as far as a browser on this machine needs them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.h"

namespace vramscope::serve::http {

inline constexpr std::size_t kLongestHead = 16 * 1024;

struct Request {
  std::string method;
  std::string path;                                         // before "?", still escaped
  std::string query;                                        // after it
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  bool keep_alive = true;

  std::string_view header(std::string_view name) const;
};

// Sends one piece of a stream; false if the reader is gone.
using Send = std::function<bool(std::string_view)>;

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool trusted = false;  // the client has presented the token: among many connections, this one is kept longest
  std::function<void(const Send&)> stream;  // if set: produces the body until it returns
};

// The head of a request, up to and including its empty line. The error is for the log; the client gets a 400.
Result<Request> parse_head(std::string_view head);
std::string format_head(const Response& response, bool keep_alive);

}  // namespace vramscope::serve::http
