#include "serve/http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "serve/http/listen.h"

namespace vramscope::serve::http {

namespace {

constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};
constexpr int kStreamSendSeconds = 30;
constexpr std::string_view kEndOfHead = "\r\n\r\n";

Response plain(int status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

// A stream has a thread of its own, which may wait for its reader.
bool send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void let_it_wait(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const timeval limit{kStreamSendSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// Whatever else the process does needs descriptors, too: visitors must not end a recording.
Limits within_descriptors(Limits limits) {
  constexpr std::size_t kPerConnection = 4, kPerStranger = 16, kLeastConnections = 8, kLeastStrangers = 4;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return limits;
  limits.connections = std::min<std::size_t>(limits.connections, std::max(kLeastConnections, files.rlim_cur / kPerConnection));
  limits.strangers = std::min<std::size_t>(limits.strangers, std::max(kLeastStrangers, files.rlim_cur / kPerStranger));
  return limits;
}

// One question that cannot be answered (no memory for it) does not end the server.
Response answered(const Server::Handler& handler, const Request& request) try {
  return handler(request);
} catch (const std::exception& error) {
  return plain(500, std::string("cannot answer: ") + error.what());
}

}  // namespace

Server::Server(Handler handler, Limits limits, Quick quick)
    : handler_(std::move(handler)), quick_(std::move(quick)), limits_(within_descriptors(limits)) {
  if (limits_.workers == 0) limits_.workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 8);
}

Server::~Server() {
  if (listen_fd_ >= 0) ::close(listen_fd_);
  for (const int fd : wake_)
    if (fd >= 0) ::close(fd);
}

Result<std::uint16_t> Server::listen(const std::string& host, std::uint16_t port, std::string_view port_option) {
  const auto listening = open_listening(host, port, port_option);
  if (!listening) return std::unexpected(listening.error());
  listen_fd_ = listening->fd;
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return fail(fmt::format("cannot start the server: {}", std::strerror(errno)));
  return listening->port;
}

void Server::stop() {
  stopping_ = true;
  wake();
}

void Server::wake() const {
  if (wake_[1] >= 0 && ::write(wake_[1], "x", 1) < 0) return;  // full: it wakes up anyway
}

void Server::run() {
  start_workers();
  while (!stopping_) {
    try {
      poll_once();
    } catch (const std::exception&) {  // no memory for a request: the next one may need less
      std::this_thread::sleep_for(kPauseWithoutDescriptors);
    }
  }
  end();
}

// Peers hear of it first, those that were never accepted too: nobody waits for an answer that takes long.
void Server::end() {
  ::close(std::exchange(listen_fd_, -1));
  for (const auto& [fd, connection] : connections_) ::shutdown(fd, SHUT_RDWR);
  {
    // A worker that looked at stopping_ just before it was set is asleep once this lock is free, and not deaf to the call.
    const std::lock_guard lock(mutex_);
    work_there_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
  while (!connections_.empty()) close(connections_.begin());
}

// --- workers

void Server::start_workers() {
  try {
    while (workers_.size() < limits_.workers) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    limits_.workers = workers_.size();  // near the limit of processes: these do the work, and without any the loop does
  }
}

void Server::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      work_there_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    report({.fd = job.fd,
            .response = answered(handler_, job.request),
            .keep = job.request.keep_alive,
            .with_body = job.request.method != "HEAD"});
  }
}

void Server::report(Done done) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }
  wake();
}

// --- the loop

int Server::milliseconds_to_wait() const {
  Clock::time_point next = Clock::now() + std::chrono::seconds(60);
  for (const auto& [fd, connection] : connections_)
    if (connection.state == State::reading || connection.state == State::writing) next = std::min(next, connection.deadline);
  if (accept_again_ > Clock::now()) next = std::min(next, accept_again_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(0, left));
}

void Server::poll_once() {
  std::vector<pollfd> waits = {{wake_[0], POLLIN, 0}};
  if (Clock::now() >= accept_again_) waits.push_back({listen_fd_, POLLIN, 0});
  for (const auto& [fd, connection] : connections_) {
    if (connection.state == State::reading) waits.push_back({fd, POLLIN, 0});
    if (connection.state == State::writing) waits.push_back({fd, POLLOUT, 0});
  }
  if (::poll(waits.data(), waits.size(), milliseconds_to_wait()) < 0 && errno != EINTR)
    accept_again_ = Clock::now() + kPauseWithoutDescriptors;
  char drained[256];
  while (::read(wake_[0], drained, sizeof drained) > 0) continue;
  if (stopping_) return;
  take_done();
  bool accepts = false;
  for (const pollfd& wait : waits) {
    if (wait.revents == 0 || wait.fd == wake_[0]) continue;
    if (wait.fd == listen_fd_) {
      accepts = true;  // last: those that are here come first
      continue;
    }
    const auto at = connections_.find(wait.fd);
    if (at == connections_.end()) continue;
    if (at->second.state == State::reading) {
      read(wait.fd, at->second);
    } else if (at->second.state == State::writing) {
      write(wait.fd, at->second);
      take_requests(wait.fd, at->second);
    }
  }
  if (accepts) accept_all();
  close_late();
}

void Server::accept_all() {
  // A few at a time: those that are here want to be served meanwhile.
  for (int n = 0; n < 16; ++n) {
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Without a descriptor the socket stays ready for ever: asking again at once would only burn the processor.
      const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (none_left && !close_oldest(false)) accept_again_ = Clock::now() + kPauseWithoutDescriptors;
      return;
    }
    if (!make_room()) {
      const std::string head = format_head(plain(503, ""), false);
      (void)::send(fd, head.data(), head.size(), MSG_NOSIGNAL);
      ::close(fd);
      continue;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& connection = connections_[fd];
    connection.number = ++accepted_;
    connection.deadline = Clock::now() + limits_.head;
    read(fd, connection);  // the request is usually here already: a client that sends it at once does not count as waiting
  }
}

// For one more. False: everybody here has a better right to it.
bool Server::make_room() {
  const auto is_stranger = [](const auto& entry) { return !entry.second.trusted; };
  const auto strangers = static_cast<std::size_t>(std::ranges::count_if(connections_, is_stranger));
  if (strangers < limits_.strangers && connections_.size() < limits_.connections) return true;
  return close_oldest(false) || (strangers < limits_.strangers && close_oldest(true));
}

// The one that has been here longest among those that are not being answered.
bool Server::close_oldest(bool trusted) {
  auto oldest = connections_.end();
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const Connection& connection = at->second;
    const bool waits = connection.state == State::reading || (connection.state == State::writing && !connection.trusted);
    if (!waits || connection.trusted != trusted) continue;
    if (oldest == connections_.end() || connection.number < oldest->second.number) oldest = at;
  }
  if (oldest == connections_.end()) return false;
  close(oldest);
  return true;
}

void Server::close(Connections::iterator at) {
  if (at->second.stream.joinable()) {
    ::shutdown(at->first, SHUT_RDWR);
    at->second.stream.join();
    --streams_;
  }
  ::close(at->first);
  connections_.erase(at);
}

void Server::close_late() {
  const Clock::time_point now = Clock::now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto next = std::next(at);
    const Connection& connection = at->second;
    const bool waits = connection.state == State::reading || connection.state == State::writing;
    if (waits && (connection.over || connection.deadline <= now)) close(at);
    at = next;
  }
}

// --- one connection

void Server::read(int fd, Connection& connection) {
  char buffer[4096];
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    connection.over = true;
    return;
  }
  // The whole head has its time from its first byte on; more bytes do not renew it.
  if (connection.in.empty() && connection.served > 0) connection.deadline = Clock::now() + limits_.head;
  connection.in.append(buffer, static_cast<std::size_t>(got));
  take_requests(fd, connection);
}

// Several may have come at once; each waits for the answer to the one before it.
void Server::take_requests(int fd, Connection& connection) {
  while (connection.state == State::reading && !connection.over && take_request(fd, connection)) continue;
}

// False: there is no whole one.
bool Server::take_request(int fd, Connection& connection) {
  const std::size_t end = connection.in.find(kEndOfHead);
  if (end == std::string::npos) {
    if (connection.in.size() > kLongestHead) answer(fd, connection, plain(431, ""), false, true);
    return false;
  }
  const Result<Request> request = parse_head(std::string_view(connection.in).substr(0, end + kEndOfHead.size()));
  connection.in.erase(0, end + kEndOfHead.size());
  ++connection.served;
  if (!request) {
    answer(fd, connection, plain(400, "bad request: " + request.error().message), false, true);
    return false;
  }
  const bool with_body = request->method != "HEAD";
  if (with_body && request->method != "GET") {
    answer(fd, connection, plain(405, "only GET is supported"), request->keep_alive, true);
  } else if (const auto quick = quick_ ? quick_(*request) : std::nullopt) {
    answer(fd, connection, *quick, request->keep_alive, with_body);
  } else {
    connection.state = State::working;
    if (workers_.empty()) {
      report({.fd = fd, .response = answered(handler_, *request), .keep = request->keep_alive, .with_body = with_body});
      return true;
    }
    const std::lock_guard lock(mutex_);
    jobs_.push_back({fd, *request});
    work_there_.notify_one();
  }
  return true;
}

void Server::take_done() {
  std::deque<Done> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (Done& each : done) {
    const auto at = connections_.find(each.fd);
    if (at == connections_.end()) continue;
    if (each.stream_ended) {
      close(at);
    } else if (each.response.stream) {
      at->second.trusted |= each.response.trusted;
      start_stream(each.fd, at->second, std::move(each.response));
    } else {
      answer(each.fd, at->second, each.response, each.keep, each.with_body);
      take_requests(each.fd, at->second);
    }
  }
}

void Server::answer(int fd, Connection& connection, const Response& response, bool keep, bool with_body) {
  connection.trusted |= response.trusted;
  connection.keep = keep && connection.served < limits_.requests;
  connection.out = format_head(response, connection.keep);
  if (with_body) connection.out += response.body;
  connection.sent = 0;
  connection.state = State::writing;
  connection.deadline = Clock::now() + limits_.send;
  write(fd, connection);
}

void Server::write(int fd, Connection& connection) {
  while (connection.sent < connection.out.size()) {
    const ssize_t sent =
        ::send(fd, connection.out.data() + connection.sent, connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent <= 0) {
      connection.over = true;
      return;
    }
    connection.sent += static_cast<std::size_t>(sent);
    if (connection.trusted) connection.deadline = Clock::now() + limits_.send;
  }
  connection.out = {};
  connection.state = State::reading;
  // A stranger who asks on before there is an answer costs a few bytes, and the server the whole page each time.
  if (!connection.keep || (!connection.trusted && !connection.in.empty())) {
    connection.over = true;
    return;
  }
  connection.deadline = Clock::now() + (connection.trusted && connection.in.empty() ? limits_.idle : limits_.head);
}

void Server::start_stream(int fd, Connection& connection, Response response) {
  if (streams_ >= limits_.streams)
    return answer(fd, connection, plain(503, "too many pages are following this run"), false, true);
  connection.state = State::streaming;
  let_it_wait(fd);
  try {
    connection.stream = std::thread([this, fd, given = std::move(response)] {
      if (send_all(fd, format_head(given, false))) given.stream([fd](std::string_view piece) { return send_all(fd, piece); });
      report({.fd = fd, .response = {}, .stream_ended = true});
    });
    ++streams_;
  } catch (const std::system_error&) {
    connection.state = State::reading;
    connection.over = true;
  }
}

}  // namespace vramscope::serve::http
