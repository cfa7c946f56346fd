// What `serve` and `run --live` have in common: a server over a library, and the thread that checks for new data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "serve/app_server.h"
#include "serve/http/server.h"
#include "serve/library.h"

namespace vramscope::serve {

struct ServeOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string token;                        // empty: a random one
  std::string_view port_option = "--port";  // how the user chose the port
};

// The error for a port number that cannot be one; `option` is how the user gave it.
Status check_port(std::string_view option, std::uint64_t port);

class RunningServer {
 public:
  static Result<std::unique_ptr<RunningServer>> start(std::shared_ptr<Library> library, const ServeOptions& options);
  ~RunningServer();

  // The address that a user opens.
  const std::string& address() const { return address_; }
  // Whether a page is open and listens for notifications.
  bool watched() const { return app_->watched(); }
  // Runs until it is stopped.
  void wait();
  void stop();
  http::Server& http() { return *server_; }

 private:
  RunningServer() = default;
  void attempt(const std::function<void()>& look);
  void watch();

  std::shared_ptr<Library> library_;
  std::unique_ptr<AppServer> app_;
  std::unique_ptr<http::Server> server_;
  std::string address_;
  bool complained_ = false;  // of the watching thread
  std::thread serving_;
  std::thread watching_;
};

}  // namespace vramscope::serve
