#include "serve/app_server.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "serve/bundle.h"
#include "serve/engine_service.h"
#include "serve/gzip.h"
#include "serve/params.h"

namespace vramscope::serve {

namespace {

constexpr std::size_t kWorthPacking = 1024;
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

std::string_view cookie(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    std::string_view part = header.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (part.starts_with(name) && part.size() > name.size() && part[name.size()] == '=') return part.substr(name.size() + 1);
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return {};
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
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return fail("the system gives no random numbers for the access token");
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
    : library_(std::move(library)), service_(std::make_unique<EngineService>(library_)), access_(std::move(access)) {}

std::string AppServer::cookie_name() const { return fmt::format("vramscope_{}", access_.port); }  // cookies know no ports

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

bool AppServer::token_given(const http::Request& request) const {
  const Params params = parse_query(request.query);
  const auto in_address = params.find("token");
  return same_secret(request.header("x-vramscope-token"), access_.token) ||
         same_secret(cookie(request.header("cookie"), cookie_name()), access_.token) ||
         (in_address != params.end() && same_secret(in_address->second, access_.token));
}

http::Response AppServer::answer(const http::Request& request, const std::function<bool()>& stopping) {
  http::Response response = route(request, stopping);
  protect(response);
  const bool packs = request.header("accept-encoding").find("gzip") != std::string_view::npos;
  if (packs && !response.stream && response.body.size() >= kWorthPacking) {
    response.body = gzip(response.body, 1);
    response.headers.emplace_back("Content-Encoding", "gzip");
  }
  return response;
}

http::Response AppServer::route(const http::Request& request, const std::function<bool()>& stopping) {
  const std::string_view host = request.header("host");
  if (!host_allowed(host)) return refuse(403, "this server does not answer for that host");
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && origin != fmt::format("http://{}", host)) return refuse(403, "requests from other pages are refused");
  // Another port of this machine is the same site and gets the cookie too: only the page itself may ask.
  const std::string_view site = request.header("sec-fetch-site");
  if ((site == "cross-site" || site == "same-site") && request.path != "/")
    return refuse(403, "requests from other pages are refused");
  if (!token_given(request)) return refuse(401, "Open the address that vramscope printed: it holds the token.");
  if (request.path == "/") {
    const auto page = bundle();
    if (!page) return refuse(503, page.error().message);
    http::Response response;
    response.type = "text/html; charset=utf-8";
    response.body = *page;
    response.headers.emplace_back("Set-Cookie",
                                  fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name(), access_.token));
    return response;
  }
  if (request.path == "/events") return events(stopping);
  if (request.path.starts_with("/api/")) return api(request);
  return refuse(404, "there is nothing here");
}

Result<std::shared_ptr<const std::string>> AppServer::ask(const std::string& name, const std::string& query) {
  const std::string key = fmt::format("{}|{}?{}", library_->revision(), name, query);
  if (auto known = cache_.find(key)) return known;
  auto made = dispatch(*service_, name, parse_query(query));
  if (!made) return std::unexpected(made.error());
  auto answer = std::make_shared<const std::string>(std::move(*made));
  cache_.put(key, answer);
  return answer;
}

http::Response AppServer::api(const http::Request& request) {
  const auto answer = ask(request.path.substr(5), request.query);
  if (!answer) return refuse(422, answer.error().message);
  http::Response response;
  response.type = "application/octet-stream";
  response.body = **answer;
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
  std::uint64_t told = 0;
  auto last = std::chrono::steady_clock::now();
  while (!stopping()) {
    const bool live = library_->live();
    const std::uint64_t revision = library_->revision();
    const auto now = std::chrono::steady_clock::now();
    if (revision != told || !live) {
      told = revision;
      last = now;
      if (!send(fmt::format("data: {{\"state\":\"{}\",\"revision\":{}}}\n\n", live ? "live" : "complete", revision)) || !live)
        return;
    } else if (now - last > kHeartbeat) {
      last = now;
      if (!send(":\n\n")) return;
    }
    std::this_thread::sleep_for(kShortestNews);
  }
}

void AppServer::warm_up(const std::function<bool()>& stopping) {
  for (std::size_t i = 0; i < library_->size(); ++i)
    for (const char* name : {"overview", "steps", "leaks"})
      if (stopping() || !ask(name, fmt::format("trace={}", i))) break;
  // The first use of a grouping reads every event: seconds in a trace of 100 M. A run that goes on would need it again and again.
  if (library_->size() != 1 || library_->live() || stopping() || !ask("map", "trace=0&at=steady")) return;
  for (const char* by : {"layer", "op", "line", "dtype", "phase", "pool", "step"})
    if (stopping() || !ask("stack", fmt::format("trace=0&by={}&level=10&tile=0", by))) break;
}

}  // namespace vramscope::serve
