#include "serve/http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace vramscope::serve::http {

namespace {

void set_time_limit(int fd, int seconds) {
  const timeval limit{seconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Reads until the empty line. Empty: closed or too slow. `rest` keeps what came after the head.
std::string read_head(int fd, std::string& rest, bool& too_long) {
  for (;;) {
    const std::size_t end = rest.find("\r\n\r\n");
    if (end != std::string::npos) {
      std::string head = rest.substr(0, end + 4);
      rest.erase(0, end + 4);
      return head;
    }
    too_long = rest.size() > kLongestHead;
    if (too_long) return {};
    char buffer[4096];
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    rest.append(buffer, static_cast<std::size_t>(got));
  }
}

Response plain(int status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

}  // namespace

Server::Server(Handler handler, Limits limits) : handler_(std::move(handler)), limits_(limits) {}

Server::~Server() {
  if (listen_fd_ >= 0) ::close(listen_fd_);
  for (const int fd : wake_)
    if (fd >= 0) ::close(fd);
}

Result<std::uint16_t> Server::listen(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &found); code != 0)
    return fail(fmt::format("cannot listen on {}: {}; give an address of this machine with --host", host, gai_strerror(code)));
  std::string problem;
  for (const addrinfo* info = found; info != nullptr && listen_fd_ < 0; info = info->ai_next) {
    const int fd = ::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, info->ai_addr, info->ai_addrlen) == 0 && ::listen(fd, 64) == 0)
      listen_fd_ = fd;
    else {
      problem = std::strerror(errno);
      ::close(fd);
    }
  }
  freeaddrinfo(found);
  if (listen_fd_ < 0)
    return fail(fmt::format("cannot listen on {} port {}: {}; choose another with --port", host, port, problem));
  if (pipe2(wake_, O_CLOEXEC) != 0) return fail(fmt::format("cannot start the server: {}", std::strerror(errno)));
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

void Server::run() {
  while (!stopping_) {
    pollfd waits[2] = {{listen_fd_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) break;
    if (stopping_ || (waits[0].revents & POLLIN) == 0) continue;
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    set_time_limit(fd, limits_.idle_seconds);
    if (open_ >= limits_.connections) {
      send_all(fd, format_head(plain(503, ""), false));
      ::close(fd);
      continue;
    }
    ++open_;
    {
      const std::lock_guard lock(mutex_);
      connections_.insert(fd);
    }
    std::thread([this, fd] {
      serve_connection(fd);
      {
        const std::lock_guard lock(mutex_);
        connections_.erase(fd);
        ::close(fd);
      }
      --open_;
    }).detach();
  }
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
  }
  while (open_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void Server::stop() {
  stopping_ = true;
  if (wake_[1] >= 0 && ::write(wake_[1], "x", 1) < 0) return;
}

void Server::serve_connection(int fd) {
  std::string rest;
  for (std::size_t served = 0; served < limits_.requests && !stopping_; ++served) {
    bool too_long = false;
    const std::string head = read_head(fd, rest, too_long);
    if (head.empty()) {
      if (too_long) send_all(fd, format_head(plain(431, ""), false));
      return;
    }
    const Result<Request> request = parse_head(head);
    if (!request) {
      const Response answer = plain(400, "bad request: " + request.error().message);
      send_all(fd, format_head(answer, false) + answer.body);
      return;
    }
    const Response answer =
        request->method == "GET" || request->method == "HEAD" ? handler_(*request) : plain(405, "only GET is answered");
    const bool keep = request->keep_alive && !answer.stream;
    if (!send_all(fd, format_head(answer, keep))) return;
    if (answer.stream) {
      answer.stream([fd](std::string_view piece) { return send_all(fd, piece); });
      return;
    }
    if (request->method != "HEAD" && !send_all(fd, answer.body)) return;
    if (!keep) return;
  }
}

}  // namespace vramscope::serve::http
