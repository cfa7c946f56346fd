#include "serve/run_server.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <utility>

namespace vramscope::serve {

namespace {

constexpr auto kRefreshInterval = std::chrono::milliseconds(200);
constexpr int kRest = 4;  // checking for new data takes at most a fifth of one core

}  // namespace

Status check_port(std::string_view option, std::uint64_t port) {
  if (port > std::numeric_limits<std::uint16_t>::max())
    return fail(fmt::format("{} must be at most {}", option, std::numeric_limits<std::uint16_t>::max()));
  return {};
}

Result<std::unique_ptr<RunningServer>> RunningServer::start(std::shared_ptr<Library> library, const ServeOptions& options) {
  std::unique_ptr<RunningServer> running(new RunningServer);
  running->library_ = library;
  Access access;
  access.host = options.host;
  access.token = options.token;
  if (access.token.empty()) {
    auto token = make_token();
    if (!token) return std::unexpected(token.error());
    access.token = std::move(*token);
  }
  RunningServer* self = running.get();
  running->server_ = std::make_unique<http::Server>(
      [self](const http::Request& request) { return self->app_->answer(request, [self] { return self->server_->stopping(); }); },
      http::Limits{}, [self](const http::Request& request) { return self->app_->quick_answer(request); });
  const auto port = running->server_->listen(options.host, options.port, options.port_option);
  if (!port) return std::unexpected(port.error());
  access.port = *port;
  const std::string shown = options.host == "0.0.0.0" || options.host == "::" ? "127.0.0.1"
                            : options.host.find(':') != std::string::npos     ? "[" + options.host + "]"
                                                                              : options.host;
  // After the #: browsers never send that part.
  running->address_ = fmt::format("http://{}:{}/#token={}", shown, *port, access.token);
  running->app_ = std::make_unique<AppServer>(std::move(library), std::move(access));
  running->serving_ = std::thread([self] { self->server_->run(); });
  running->watching_ = std::thread([self] { self->watch(); });
  return running;
}

// A look for which there is no memory is not taken: the page shows what it knows, and the recording that it belongs to goes on.
void RunningServer::attempt(const std::function<void()>& look) {
  try {
    look();
  } catch (const std::exception& error) {
    if (!std::exchange(complained_, true)) fmt::print(stderr, "vramscope: the page may be out of date: {}\n", error.what());
  }
}

void RunningServer::watch() {
  attempt([this] { app_->warm_up([this] { return server_->stopping(); }); });
  auto next = std::chrono::steady_clock::now();
  while (!server_->stopping()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (std::chrono::steady_clock::now() < next) continue;
    const auto began = std::chrono::steady_clock::now();
    attempt([this] { library_->refresh(); });
    const auto took = std::chrono::steady_clock::now() - began;
    next = began + took + std::max<std::chrono::steady_clock::duration>(kRefreshInterval, kRest * took);
  }
}

void RunningServer::wait() {
  if (serving_.joinable()) serving_.join();
}

void RunningServer::stop() {
  server_->stop();
  if (watching_.joinable()) watching_.join();
  if (serving_.joinable()) serving_.join();
}

RunningServer::~RunningServer() { stop(); }

}  // namespace vramscope::serve
