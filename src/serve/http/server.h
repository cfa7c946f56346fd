// A small HTTP/1.1 server for a browser: GET only, no body, bounded heads, bounded connections, deadlines.
//
// One thread reads requests and writes answers, and never waits for a peer. A few workers compute the answers, in the order of
// the requests. So a hundred clients take turns instead of slowing each other down, and a silent or slow peer occupies only a
// socket. If there are many connections, those that have not presented the secret (Response::trusted) are closed first, so that
// strangers cannot lock out the owner.
//
// This is our own code because the packaged cpp-httplib is a shared library that brings OpenSSL, brotli and a second libstdc++
// into a program that must run with glibc alone. The part that is needed is smaller than what would have to be shipped.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "serve/http/message.h"

namespace vramscope::serve::http {

struct Limits {
  std::size_t connections = 256;  // a quarter of the descriptors that the process may open, if that is less
  std::size_t strangers = 64;     // of these, connections that have not presented the secret; a sixteenth
  std::size_t streams = 32;
  std::size_t workers = 0;                 // 0: one per processor, at least two, at most eight
  std::chrono::milliseconds head{10'000};  // for a whole head, from the connection or from its first byte
  std::chrono::milliseconds idle{60'000};  // between requests of a trusted connection; a stranger has as long as for a head
  std::chrono::milliseconds send{30'000};  // for an answer; renewed by progress of a trusted connection
  std::size_t requests = 20'000;           // of one connection
};

class Server {
 public:
  // Computes an answer; called from several threads.
  using Handler = std::function<Response(const Request&)>;
  // Answers what needs no work, in the thread that serves all connections. Nothing: it is a worker's job.
  using Quick = std::function<std::optional<Response>(const Request&)>;

  explicit Server(Handler handler, Limits limits = {}, Quick quick = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds to the port; 0 selects a free one. Returns the port.
  Result<std::uint16_t> listen(const std::string& host, std::uint16_t port, std::string_view port_option = "--port");
  // Accepts connections until stop(), then closes all of them and returns when the answers in progress are done. Call it once.
  void run();
  void stop();  // from any thread or signal handler
  bool stopping() const { return stopping_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { reading, working, writing, streaming };
  struct Connection {
    std::uint64_t number = 0;  // ascending, in order of arrival
    State state = State::reading;
    std::string in;   // received, and not part of an earlier request
    std::string out;  // what is left to send from `sent` on
    std::size_t sent = 0;
    std::size_t served = 0;
    bool keep = false;  // after this answer
    bool trusted = false;
    bool over = false;  // to be closed
    Clock::time_point deadline;
    std::thread stream;
  };
  struct Job {
    int fd = -1;
    Request request;
  };
  struct Done {
    int fd = -1;
    Response response;
    bool keep = false;
    bool with_body = true;
    bool stream_ended = false;
  };
  using Connections = std::map<int, Connection>;

  void end();
  void start_workers();
  void work();
  void report(Done done);  // to the loop, from another thread
  void wake() const;

  void poll_once();
  void accept_all();
  bool make_room();
  bool close_oldest(bool trusted);
  void close(Connections::iterator at);
  void close_late();
  void read(int fd, Connection& connection);
  void take_requests(int fd, Connection& connection);
  bool take_request(int fd, Connection& connection);
  void answer(int fd, Connection& connection, const Response& response, bool keep, bool with_body);
  void start_stream(int fd, Connection& connection, Response response);
  void write(int fd, Connection& connection);
  void take_done();
  int milliseconds_to_wait() const;

  Handler handler_;
  Quick quick_;
  Limits limits_;
  int listen_fd_ = -1;
  int wake_[2] = {-1, -1};
  std::atomic<bool> stopping_{false};

  // Of the loop's thread.
  Connections connections_;
  std::uint64_t accepted_ = 0;
  std::size_t streams_ = 0;
  Clock::time_point accept_again_;  // after the system had no descriptor left

  // Shared with the workers.
  std::mutex mutex_;
  std::condition_variable work_there_;
  std::deque<Job> jobs_;
  std::deque<Done> done_;
  std::vector<std::thread> workers_;
};

}  // namespace vramscope::serve::http
