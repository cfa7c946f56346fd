#include "serve/http/post.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "support/owned_fd.h"

namespace vramscope::serve::http {

namespace {

auto invalid(std::string_view text) {
  return fail(fmt::format("invalid address \"{}\": expected an address such as http://127.0.0.1:4318", text));
}

using Clock = std::chrono::steady_clock;

// What is left of the time for everything, so that a byte now and then does not renew it. For connect() too, which obeys the
// limit for sending. False: nothing is left.
bool limit_time(int fd, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  const timeval limit{.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
  if (left <= 0) return false;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return true;
}

Result<support::OwnedFd> connect_to(const Url& url, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &found); code != 0)
    return fail(gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  int problem = ETIMEDOUT;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    support::OwnedFd fd(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd && !limit_time(fd.get(), deadline)) break;
    if (fd && ::connect(fd.get(), info->ai_addr, info->ai_addrlen) == 0) return fd;
    problem = errno == EINPROGRESS ? ETIMEDOUT : errno;
  }
  return fail(std::strerror(problem));
}

Status send_all(int fd, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    if (!limit_time(fd, deadline)) return fail(std::strerror(ETIMEDOUT));
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return fail(std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

// The first line of the answer; the rest is of no interest.
Result<std::string> status_line(int fd, Clock::time_point deadline) {
  constexpr std::size_t kMost = 4096;
  std::string line;
  char part[512];
  while (line.size() < kMost && line.find('\n') == std::string::npos) {
    if (!limit_time(fd, deadline)) return fail("no answer");
    const ssize_t got = ::recv(fd, part, sizeof part, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno == EAGAIN ? "no answer" : std::strerror(errno));
    if (got == 0) break;
    line.append(part, static_cast<std::size_t>(got));
  }
  return line.substr(0, std::min(line.find_first_of("\r\n"), line.size()));
}

}  // namespace

Result<Url> parse_url(std::string_view text, const Url& defaults) {
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://"))
    return fail(fmt::format(
        "\"{}\": https is not supported; run an OpenTelemetry Collector on this machine that forwards to it, and pass "
        "the http:// address of that Collector",
        text));
  if (!text.starts_with(kScheme)) return invalid(text);
  // A control character or a space would end the request's first line.
  if (std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f; })) return invalid(text);
  const std::string_view rest = text.substr(kScheme.size());
  const std::string_view authority = rest.substr(0, rest.find('/'));
  Url out = defaults;
  if (authority.size() + 1 < rest.size()) out.path = rest.substr(authority.size());
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  out.host = authority.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty() || out.host.find('@') != std::string::npos) return invalid(text);
  if (colon == std::string_view::npos) return out;
  const std::string_view port = authority.substr(colon + 1);
  const auto done = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (done.ec != std::errc() || done.ptr != port.data() + port.size() || out.port == 0) return invalid(text);
  return out;
}

Status post(const Url& url, std::string_view type, std::string_view body, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  const auto fd = connect_to(url, deadline);
  if (!fd) return std::unexpected(fd.error());
  const bool v6 = url.host.find(':') != std::string::npos;
  const std::string head =
      fmt::format("POST {} HTTP/1.1\r\nHost: {}{}{}:{}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                  url.path, v6 ? "[" : "", url.host, v6 ? "]" : "", url.port, type, body.size());
  if (Status sent = send_all(fd->get(), head, deadline); !sent) return sent;
  if (Status sent = send_all(fd->get(), body, deadline); !sent) return sent;
  const auto line = status_line(fd->get(), deadline);
  if (!line) return std::unexpected(line.error());
  return check_status(*line);
}

Status check_status(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (!line.starts_with("HTTP/1.") || space == std::string_view::npos) return fail("the answer is not HTTP");
  const std::string_view status = line.substr(space + 1);
  if (!status.starts_with('2')) return fail(fmt::format("the server answered {}", status));
  return {};
}

}  // namespace vramscope::serve::http
