#include "cli/metrics_server.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "cli/no_thread.h"
#include "cli/top/metrics.h"
#include "serve/http/server.h"

namespace vramscope::cli {

Result<MetricsAddress> parse_metrics_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  MetricsAddress out;
  const std::string_view port = std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1);
  const auto done = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (done.ec != std::errc() || done.ptr != port.data() + port.size())
    return fail(fmt::format("--metrics: invalid address \"{}\": expected a port such as :9400, or HOST:PORT", text));
  if (colon != std::string::npos && colon > 0) out.host = text.substr(0, colon);
  return out;
}

namespace {

bool is_loopback(std::string_view host) {
  const bool is_number = host.find_first_not_of("0123456789.") == host.npos;  // and not a name that begins like one
  return (is_number && host.starts_with("127.")) || host == "localhost" || host == "::1" || host == "[::1]";
}

// "127.0.0.1:9400"
std::string_view without_port(std::string_view host) { return host.substr(0, host.ends_with(']') ? host.npos : host.rfind(':')); }

}  // namespace

struct MetricsServer::State {
  State() : server([this](const serve::http::Request& request) { return answer(request); }, {.workers = 2}) {}

  serve::http::Response answer(const serve::http::Request& request) {
    serve::http::Response response;
    // A foreign page that points its own name at this machine sends that name here.
    if (this_machine_alone && !is_loopback(without_port(request.header("host")))) {
      response.status = 403;
      response.body = "this server does not serve that host name\n";
      return response;
    }
    if (request.path != "/metrics") {
      response.status = 404;
      response.body = "the metrics are at /metrics\n";
      return response;
    }
    const bool open = request.header("accept").find("application/openmetrics-text") != std::string_view::npos;
    const auto format = open ? top::MetricsFormat::open_metrics : top::MetricsFormat::prometheus;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    response.type = top::content_type(format);
    const std::lock_guard lock(mutex);
    response.body = top::metrics_text(
        gatherer.gather(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count())), format);
    return response;
  }

  bool this_machine_alone = true;
  std::mutex mutex;
  top::Gatherer gatherer;
  serve::http::Server server;
  std::thread thread;
};

MetricsServer::MetricsServer() : state_(std::make_unique<State>()) {}

MetricsServer::~MetricsServer() {
  state_->server.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address) {
  const auto parsed = parse_metrics_address(address);
  if (!parsed) return std::unexpected(parsed.error());
  std::unique_ptr<MetricsServer> server(new MetricsServer());
  const auto port = server->state_->server.listen(parsed->host, parsed->port, "--metrics");
  if (!port) return std::unexpected(port.error());
  server->state_->this_machine_alone = is_loopback(parsed->host);
  server->url_ = fmt::format("http://{}:{}/metrics", parsed->host, *port);
  try {
    server->state_->thread = std::thread([state = server->state_.get()] { state->server.run(); });
  } catch (const std::system_error& error) {
    return no_thread(error);
  }
  return server;
}

}  // namespace vramscope::cli
