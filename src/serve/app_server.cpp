#include "serve/app_server.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "serve/bundle.h"
#include "serve/engine_service.h"
#include "serve/gen/views.h"
#include "serve/params.h"
#include "support/gzip.h"
#include "support/json_writer.h"

namespace vramscope::serve {

namespace {

constexpr auto kShortestNews = std::chrono::milliseconds(100);  // ten updates a second at most
constexpr auto kHeartbeat = std::chrono::seconds(10);

http::Response refuse(int status, std::string text) {
  http::Response response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

// Takes the same time wherever the first difference is.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

// "Bearer TOKEN"
std::string_view bearer(std::string_view header) {
  constexpr std::string_view kScheme = "Bearer ";
  return header.starts_with(kScheme) ? header.substr(kScheme.size()) : std::string_view();
}

bool takes_packed(const http::Request& request) {
  return request.header("accept-encoding").find("gzip") != std::string_view::npos;
}

bool is_address_literal(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

void protect(http::Response& response) {
  // The page carries its own policy for scripts and styles; what only a header can say is said here.
  response.headers.emplace_back("Content-Security-Policy",
                                "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; connect-src "
                                "'self'; img-src data:; font-src data:; "
                                "script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response.headers.emplace_back("Cache-Control", "no-store");
}

}  // namespace

Result<std::string> make_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    return fail("cannot get random numbers for the access token from the system");
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

std::shared_ptr<const std::string> AnswerCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = places_.find(key);
  if (at == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->answer;
}

void AnswerCache::put(const std::string& key, std::shared_ptr<const std::string> answer) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(key) || answer->size() > most_bytes_ / 4) return;
  bytes_ += answer->size();
  entries_.push_front({key, std::move(answer)});
  places_[key] = entries_.begin();
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().answer->size();
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

AppServer::AppServer(std::shared_ptr<Library> library, Access access)
    : library_(std::move(library)), service_(std::make_unique<EngineService>(library_)), access_(std::move(access)) {
  if (const auto page = bundle()) page_ = support::gzip(*page, 6);
}

// A foreign page that points its own name at this machine sends that name here: it is refused.
bool AppServer::host_allowed(std::string_view host) const {
  const std::string suffix = fmt::format(":{}", access_.port);
  if (!host.ends_with(suffix)) return false;
  host.remove_suffix(suffix.size());
  if (host == "127.0.0.1" || host == "localhost" || host == "[::1]" || host == access_.host) return true;
  if (access_.host != "0.0.0.0" && access_.host != "::") return false;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return is_address_literal(host) || host == std::string_view(name);
}

// Only in a header: a cookie would go to every other port of this host, an address into logs and lists of processes.
bool AppServer::token_given(const http::Request& request) const {
  return same_secret(bearer(request.header("authorization")), access_.token) ||
         same_secret(request.header("x-vramscope-token"), access_.token);
}

std::optional<http::Response> AppServer::refusal(const http::Request& request) const {
  const std::string_view host = request.header("host");
  if (!host_allowed(host)) return refuse(403, "this server does not serve that host name");
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && origin != fmt::format("http://{}", host)) return refuse(403, "requests from other pages are refused");
  // The page itself holds no secret: it is the same for everybody, and shows nothing without the token.
  if (request.path == "/") return std::nullopt;
  const std::string_view site = request.header("sec-fetch-site");
  if (site == "cross-site" || site == "same-site") return refuse(403, "requests from other pages are refused");
  if (!token_given(request)) return refuse(401, "Open the address that vramscope printed: it contains the token.");
  return std::nullopt;
}

std::optional<http::Response> AppServer::quick_answer(const http::Request& request) {
  const bool packed = takes_packed(request);
  std::optional<http::Response> response = refusal(request);
  if (!response && request.path == "/") {
    response.emplace();
    const auto page = bundle();
    if (!page) {
      response = refuse(503, page.error().message);
    } else {
      response->type = "text/html; charset=utf-8";
      response->body = packed ? page_ : std::string(*page);
      if (packed) response->headers.emplace_back("Content-Encoding", "gzip");
    }
  } else if (!response && request.path.starts_with("/api/")) {
    const auto known = cache_.find(cache_key(std::string_view(request.path).substr(5), request.query, packed));
    if (!known) return std::nullopt;
    response.emplace();
    response->type = "application/octet-stream";
    response->body = *known;
    response->trusted = true;
    if (packed) response->headers.emplace_back("Content-Encoding", "gzip");
  } else if (!response && request.path != "/events") {
    response = refuse(404, "not found");
    response->trusted = true;
  }
  if (response) protect(*response);
  return response;
}

http::Response AppServer::answer(const http::Request& request, const std::function<bool()>& stopping) {
  if (auto quick = quick_answer(request)) return std::move(*quick);
  http::Response response = request.path == "/events" ? events(stopping) : api(request);
  response.trusted = true;
  protect(response);
  return response;
}

std::string AppServer::cache_key(std::string_view name, std::string_view query, bool packed) const {
  return fmt::format("{}|{}|{}?{}", library_->revision(), packed, name, query);
}

Result<std::shared_ptr<const std::string>> AppServer::ask(const std::string& name, const std::string& query, bool packed) {
  const std::string key = cache_key(name, query, packed);
  {
    // Several pages ask the same at once, above all when a run has news: one makes the answer, the others wait for it.
    std::unique_lock lock(making_mutex_);
    made_.wait(lock, [&] { return !making_.contains(key); });
    if (auto known = cache_.find(key)) return known;
    making_.insert(key);
  }
  // Also where there is no memory for the answer: those that wait for it would wait for ever.
  const auto over = [&] {
    {
      const std::lock_guard lock(making_mutex_);
      making_.erase(key);
    }
    made_.notify_all();
  };
  try {
    auto made = dispatch(*service_, name, parse_query(query));
    std::shared_ptr<const std::string> answer;
    if (made) {
      answer = std::make_shared<const std::string>(packed ? support::gzip(*made, 1) : std::move(*made));
      cache_.put(key, answer);
    }
    over();
    if (!made) return std::unexpected(made.error());
    return answer;
  } catch (...) {
    over();
    throw;
  }
}

http::Response AppServer::api(const http::Request& request) {
  const bool packed = takes_packed(request);
  const auto answer = ask(request.path.substr(5), request.query, packed);
  if (!answer) return refuse(422, answer.error().message);
  http::Response response;
  response.type = "application/octet-stream";
  response.body = **answer;
  if (packed) response.headers.emplace_back("Content-Encoding", "gzip");
  return response;
}

http::Response AppServer::events(const std::function<bool()>& stopping) {
  http::Response response;
  response.type = "text/event-stream";
  response.stream = [this, stopping](const http::Send& send) {
    ++listeners_;
    stream_news(send, stopping);
    --listeners_;
  };
  return response;
}

void AppServer::stream_news(const http::Send& send, const std::function<bool()>& stopping) const {
  std::uint64_t sent = 0;
  auto last = std::chrono::steady_clock::now();
  while (!stopping()) {
    const bool live = library_->live();
    const std::uint64_t revision = library_->revision();
    const auto now = std::chrono::steady_clock::now();
    if (revision != sent || !live) {
      sent = revision;
      last = now;
      support::JsonWriter json(false);
      json.begin_object().member("state", live ? "live" : "complete").member("revision", revision).end_object();
      if (!send(fmt::format("data: {}\n\n", json.text())) || !live) return;
    } else if (now - last > kHeartbeat) {
      last = now;
      if (!send(":\n\n")) return;
    }
    std::this_thread::sleep_for(kShortestNews);
  }
}

void AppServer::warm_up(const std::function<bool()>& stopping) {
  for (std::size_t i = 0; i < library_->size(); ++i)
    for (const FirstAsk& first : kFirstAsks)
      if (!first.at_instant && (stopping() || !ask(std::string(first.request), fmt::format("trace={}", i), true))) break;
  // The first use of a grouping reads every event: seconds in a trace of 100 M. A run that is still recorded would need it again
  // and again.
  if (library_->size() != 1 || library_->live() || stopping() || !ask("map", "trace=0&at=steady", true)) return;
  for (const char* by : {"layer", "op", "line", "dtype", "phase", "pool", "step"})
    if (stopping() || !ask("stack", fmt::format("trace=0&by={}&level=10&tile=0", by), true)) break;
}

}  // namespace vramscope::serve
