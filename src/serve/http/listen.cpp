#include "serve/http/listen.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace vramscope::serve::http {

namespace {

constexpr int kBacklog = 256;

}  // namespace

Result<Listening> open_listening(const std::string& host, std::uint16_t port, std::string_view port_option) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &found); code != 0)
    return fail(fmt::format("{}: cannot listen on this address: {}; pass an address of this machine with --host", host,
                            gai_strerror(code)));
  Listening out;
  std::string problem;
  for (const addrinfo* info = found; info != nullptr && out.fd < 0; info = info->ai_next) {
    const int fd = ::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      problem = std::strerror(errno);
      continue;
    }
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, info->ai_addr, info->ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) {
      out.fd = fd;
    } else {
      problem = std::strerror(errno);
      ::close(fd);
    }
  }
  freeaddrinfo(found);
  if (out.fd < 0)
    return fail(fmt::format("{} port {}: cannot listen: {}; choose another port with {}", host, port, problem, port_option));
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(out.fd, reinterpret_cast<sockaddr*>(&address), &size);
  out.port = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                                 : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  return out;
}

}  // namespace vramscope::serve::http
