#include "serve/http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace vramscope::serve::http {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  const auto at = headers.find(name);
  return at == headers.end() ? std::string_view() : std::string_view(at->second);
}

Result<Request> parse_head(std::string_view head) {
  const std::size_t first_end = head.find('\n');
  if (first_end == std::string_view::npos) return fail("missing request line");
  const std::string_view line = trimmed(head.substr(0, first_end));
  const std::size_t one = line.find(' ');
  const std::size_t two = line.rfind(' ');
  if (one == std::string_view::npos || two <= one + 1 || has_control(line)) return fail("malformed request line");
  const std::string_view version = line.substr(two + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return fail("unknown HTTP version");
  Request request;
  request.method = line.substr(0, one);
  const std::string_view target = line.substr(one + 1, two - one - 1);
  if (!target.starts_with('/')) return fail("target is not a path");
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = target.substr(0, mark);
  if (mark < target.size()) request.query = target.substr(mark + 1);
  std::string_view rest = head.substr(first_end + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view field = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (field.empty()) break;
    const std::size_t colon = field.find(':');
    if (colon == 0 || colon == std::string_view::npos) return fail("malformed header");
    const std::string name = lower(field.substr(0, colon));
    // Two Host or Origin fields could mean one thing to a check and another to a reader.
    if (!request.headers.emplace(name, trimmed(field.substr(colon + 1))).second && (name == "host" || name == "origin"))
      return fail("duplicate header");
  }
  if (!request.header("content-length").empty() && request.header("content-length") != "0")
    return fail("request bodies are not accepted");
  if (!request.header("transfer-encoding").empty()) return fail("request bodies are not accepted");
  const std::string connection = lower(request.header("connection"));
  request.keep_alive = version == "HTTP/1.1" ? connection != "close" : connection == "keep-alive";
  return request;
}

std::string format_head(const Response& response, bool keep_alive) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status, reason(response.status), response.type);
  for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (!response.stream) out += fmt::format("Content-Length: {}\r\n", response.body.size());
  out += fmt::format("Connection: {}\r\n\r\n", keep_alive && !response.stream ? "keep-alive" : "close");
  return out;
}

}  // namespace vramscope::serve::http
