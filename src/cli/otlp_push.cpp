#include "cli/otlp_push.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "cli/no_thread.h"
#include "cli/show/terminal.h"
#include "cli/top/otlp.h"

namespace vramscope::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{10'000};
constexpr milliseconds kTimeout{2'000};  // also what a silent collector can add to the end of `run`

// One of OpenTelemetry's own variables, in milliseconds.
milliseconds variable(const char* name, milliseconds otherwise) {
  const char* const text = std::getenv(name);
  unsigned value = 0;
  if (text == nullptr || std::from_chars(text, text + std::strlen(text), value).ec != std::errc() || value == 0) return otherwise;
  return milliseconds(value);
}

template <typename Unit, typename Clock>
std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<Unit>(Clock::now().time_since_epoch()).count());
}
std::uint64_t unix_ns() { return now<std::chrono::nanoseconds, std::chrono::system_clock>(); }

}  // namespace

Result<serve::http::Url> parse_otlp_address(const std::string& text) {
  auto url = serve::http::parse_url(text, {.host = {}, .port = 4318, .path = "/v1/metrics"});
  if (!url) return fail(fmt::format("--otlp: {}", url.error().message));
  return url;
}

struct OtlpPush::State {
  // What there is no memory for is not sent: the recording that it belongs to goes on.
  void push() try {
    const std::string body =
        top::otlp_request(gatherer.gather(now<std::chrono::microseconds, std::chrono::steady_clock>()), start_ns, unix_ns());
    const Status sent = serve::http::post(url, "application/json", body, timeout);
    if (!sent && works)
      say(fmt::format("vramscope: no metrics reach {}: {}; trying again\n", address, printable(sent.error().message)));
    works = sent.has_value();
  } catch (const std::exception&) {
    works = false;
  }

  void run() {
    std::unique_lock lock(mutex);
    do {
      lock.unlock();
      push();
      lock.lock();
    } while (!ends.wait_for(lock, interval, [this] { return stopping; }));
    if (works) push();
  }

  std::string address;
  serve::http::Url url;
  std::function<void(const std::string&)> say;
  top::Gatherer gatherer;
  std::uint64_t start_ns = unix_ns();
  const milliseconds interval = variable("OTEL_METRIC_EXPORT_INTERVAL", kInterval);
  const milliseconds timeout = variable("OTEL_EXPORTER_OTLP_TIMEOUT", kTimeout);
  bool works = true;
  std::mutex mutex;
  std::condition_variable ends;
  bool stopping = false;
  std::thread thread;
};

OtlpPush::OtlpPush(std::unique_ptr<State> state) : state_(std::move(state)) {}

OtlpPush::~OtlpPush() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->ends.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
}

Result<std::unique_ptr<OtlpPush>> OtlpPush::start(const std::string& address, std::function<void(const std::string&)> say) {
  const auto url = parse_otlp_address(address);
  if (!url) return std::unexpected(url.error());
  auto state = std::make_unique<State>();
  state->address = address;
  state->url = *url;
  state->say = std::move(say);
  std::unique_ptr<OtlpPush> push(new OtlpPush(std::move(state)));
  try {
    push->state_->thread = std::thread([state = push->state_.get()] { state->run(); });
  } catch (const std::system_error& error) {
    return no_thread(error);
  }
  return push;
}

}  // namespace vramscope::cli
