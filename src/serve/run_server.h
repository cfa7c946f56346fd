// What `serve` and `run --live` have in common: a server over a library, and the thread that looks for news.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "serve/app_server.h"
#include "serve/http/server.h"
#include "serve/library.h"

namespace vramscope::serve {

struct ServeOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string token;  // empty: a random one
};

class RunningServer {
 public:
  static Result<std::unique_ptr<RunningServer>> start(std::shared_ptr<Library> library, const ServeOptions& options);
  ~RunningServer();

  // What a person opens.
  const std::string& address() const { return address_; }
  // A page is open and listens for news.
  bool watched() const { return app_->watched(); }
  // Until somebody stops it.
  void wait();
  void stop();
  http::Server& http() { return *server_; }

 private:
  RunningServer() = default;
  void watch();

  std::shared_ptr<Library> library_;
  std::unique_ptr<AppServer> app_;
  std::unique_ptr<http::Server> server_;
  std::string address_;
  std::thread serving_;
  std::thread watching_;
};

}  // namespace vramscope::serve
