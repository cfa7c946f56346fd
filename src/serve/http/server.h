// A small HTTP/1.1 server for a browser: GET only, no body, bounded heads, bounded connections, time limits.
//
// Own code, because the packaged cpp-httplib is a shared library that brings OpenSSL, brotli and a second libstdc++ into a
// program that must run where only glibc is; what is needed of it is less than what would have to be shipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "serve/http/message.h"

namespace vramscope::serve::http {

struct Limits {
  std::size_t connections = 64;
  int idle_seconds = 30;         // between requests of one connection, and within one
  std::size_t requests = 20000;  // of one connection
};

class Server {
 public:
  using Handler = std::function<Response(const Request&)>;  // called from several threads

  explicit Server(Handler handler, Limits limits = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds; port 0 takes a free one. The port that was taken.
  Result<std::uint16_t> listen(const std::string& host, std::uint16_t port);
  // Accepts until stop(); returns when every connection has ended.
  void run();
  void stop();  // from any thread or signal handler
  bool stopping() const { return stopping_.load(); }

 private:
  void serve_connection(int fd);

  Handler handler_;
  Limits limits_;
  int listen_fd_ = -1;
  int wake_[2] = {-1, -1};
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> open_{0};
  std::mutex mutex_;
  std::set<int> connections_;
};

}  // namespace vramscope::serve::http
