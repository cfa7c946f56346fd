// The page and its answers over HTTP: access control, security headers, compression, live notifications.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "serve/gen/rpc.h"
#include "serve/http/message.h"
#include "serve/library.h"

namespace vramscope::serve {

// 128 random bits as hex.
Result<std::string> make_token();

struct Access {
  std::string token;
  std::string host = "127.0.0.1";  // what the server is bound to
  std::uint16_t port = 0;
};

// A cache of answers by request, limited in bytes; least recently used go first.
class AnswerCache {
 public:
  explicit AnswerCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  std::shared_ptr<const std::string> find(const std::string& key);
  void put(const std::string& key, std::shared_ptr<const std::string> answer);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const std::string> answer;
  };
  std::mutex mutex_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // newest first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

class AppServer {
 public:
  AppServer(std::shared_ptr<Library> library, Access access);
  // Thread-safe; `stopping` ends streams.
  http::Response answer(const http::Request& request, const std::function<bool()>& stopping);
  // The same if it needs no work: refusals, the page, cached answers.
  std::optional<http::Response> quick_answer(const http::Request& request);
  // Computes what every page requests first, so that the first page does not wait.
  void warm_up(const std::function<bool()>& stopping);
  // Whether a page listens for notifications.
  bool watched() const { return listeners_.load() > 0; }

 private:
  std::optional<http::Response> refusal(const http::Request& request) const;
  http::Response api(const http::Request& request);
  http::Response events(const std::function<bool()>& stopping);
  void stream_news(const http::Send& send, const std::function<bool()>& stopping) const;
  bool host_allowed(std::string_view host) const;
  bool token_given(const http::Request& request) const;
  Result<std::shared_ptr<const std::string>> ask(const std::string& name, const std::string& query, bool packed);
  std::string cache_key(std::string_view name, std::string_view query, bool packed) const;

  std::shared_ptr<Library> library_;
  std::unique_ptr<Service> service_;
  Access access_;
  AnswerCache cache_{64 << 20};
  std::string page_;  // packed
  std::mutex making_mutex_;
  std::condition_variable made_;
  std::set<std::string> making_;  // keys of answers that a worker is computing
  std::atomic<int> listeners_{0};
};

}  // namespace vramscope::serve
