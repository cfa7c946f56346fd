#include "serve/http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

namespace vramscope::serve::http {

namespace {

using namespace std::chrono_literals;

void connect_to(int fd, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval limit{30, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

class Connection {
 public:
  explicit Connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) { connect_to(fd_, port); }
  ~Connection() { ::close(fd_); }
  void send(std::string_view text) const {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  bool try_send(std::string_view text) const {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Waits for the end of the connection. False: it is still there when the time of a recv is over.
  bool is_closed() const {
    char byte = 0;
    return ::recv(fd_, &byte, 1, 0) == 0 || errno == ECONNRESET;
  }
  // Until the server closes, or until `enough` is there.
  std::string read(std::string_view enough = {}) const {
    std::string out;
    char buffer[4096];
    while (enough.empty() || out.find(enough) == std::string::npos) {
      const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      out.append(buffer, static_cast<std::size_t>(got));
    }
    return out;
  }

 private:
  int fd_;
};

class HttpServer : public ::testing::Test {
 protected:
  using Run = std::function<void()>;
  void start(Limits limits = {}, const std::function<void(const Run&)>& in_its_thread = [](const Run& run) { run(); }) {
    server_ = std::make_unique<Server>(
        [](const Request& request) {
          Response response;
          response.body = "you asked for " + request.path;
          response.trusted = request.header("secret") == "yes";
          if (request.path == "/large") response.body.assign(8 << 20, 'x');
          if (request.path == "/stream")
            response.stream = [](const Send& send) {
              for (const char* piece : {"one,", "two,", "three"}) send(piece);
            };
          return response;
        },
        limits);
    const auto port = server_->listen("127.0.0.1", 0);
    ASSERT_TRUE(port);
    port_ = *port;
    thread_ = std::thread([this, in_its_thread] { in_its_thread([this] { server_->run(); }); });
  }
  void TearDown() override {
    server_->stop();
    thread_.join();
  }

  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::uint16_t port_ = 0;
};

TEST_F(HttpServer, AnswersSeveralRequestsOfOneConnection) {
  start();
  const Connection client(port_);
  client.send(
      "GET /a HTTP/1.1\r\nHost: x\r\nSecret: yes\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nSecret: yes\r\nConnection: close\r\n\r\n");
  const std::string all = client.read();
  EXPECT_NE(all.find("you asked for /a"), std::string::npos);
  EXPECT_NE(all.find("you asked for /b"), std::string::npos);
}

TEST_F(HttpServer, AStrangerWaitsForTheAnswer) {
  start();
  const Connection client(port_);
  for (const char* path : {"/a", "/b"}) {
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    EXPECT_NE(client.read(path).find(path), std::string::npos);
  }
  const Connection hasty(port_);
  std::string all;
  for (int i = 0; i < 50; ++i) all += "GET /c HTTP/1.1\r\nHost: x\r\n\r\n";
  hasty.send(all);
  const std::string answers = hasty.read();
  EXPECT_EQ(answers.find("you asked for", answers.find("you asked for") + 1), std::string::npos) << answers;
}

TEST_F(HttpServer, ReadsAHeadThatComesInPieces) {
  start();
  const Connection client(port_);
  for (const char* piece : {"GE", "T /slow HT", "TP/1.1\r", "\nHost: x\r\nConnection: close\r\n", "\r\n"}) client.send(piece);
  EXPECT_NE(client.read().find("you asked for /slow"), std::string::npos);
}

TEST_F(HttpServer, Streams) {
  start();
  const Connection client(port_);
  client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.read().ends_with("one,two,three"));
}

TEST_F(HttpServer, RefusesOtherMethodsLongHeadsAndNonsense) {
  start();
  const Connection post(port_);
  post.send("DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(post.read().starts_with("HTTP/1.1 405"));
  const Connection nonsense(port_);
  nonsense.send("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_TRUE(nonsense.read().starts_with("HTTP/1.1 400"));
  const Connection endless(port_);
  endless.send("GET / HTTP/1.1\r\nX: " + std::string(kLongestHead + 8192, 'x'));
  EXPECT_TRUE(endless.read("\r\n\r\n").starts_with("HTTP/1.1 431"));
}

TEST_F(HttpServer, HoldsItsLimits) {
  start({.head = 300ms, .idle = 300ms, .requests = 2});
  const Connection idle(port_);
  idle.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(idle.read("/a").find("/a"), std::string::npos);
  EXPECT_EQ(idle.read(), "");  // closed by the server
  const Connection many(port_);
  std::string requests;  // with the token: a stranger gets no second answer at all
  for (const char* path : {"/a", "/b", "/c"}) requests += fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nSecret: yes\r\n\r\n", path);
  many.send(requests);
  const std::string all = many.read();
  EXPECT_NE(all.find("/b"), std::string::npos);
  EXPECT_EQ(all.find("/c"), std::string::npos);
}

// A byte now and then does not renew the time for a head.
TEST_F(HttpServer, AHeadHasADeadline) {
  start({.head = 500ms});
  const Connection slow(port_);
  const auto began = std::chrono::steady_clock::now();
  bool closed = false;
  for (const char c : std::string(600, 'G')) {
    closed = !slow.try_send({&c, 1});
    if (closed) break;
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_TRUE(closed) << "12 s of single bytes";
  EXPECT_GE(std::chrono::steady_clock::now() - began, 500ms);
}

TEST_F(HttpServer, StrangersCannotLockTheOwnerOut) {
  start({.connections = 40, .strangers = 10, .head = 600s, .idle = 600s});
  const Connection owner(port_);
  const auto ask = [](const Connection& connection, const std::string& path) {
    connection.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nSecret: yes\r\n\r\n");
    return connection.read("you asked for " + path).find("you asked for " + path) != std::string::npos;
  };
  EXPECT_TRUE(ask(owner, "/before"));
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<Connection>(port_));
    if (i % 2 == 0) silent.back()->try_send("GET /");
  }
  EXPECT_TRUE(ask(owner, "/kept")) << "the owner's connection stays";
  for (int i = 0; i < 5; ++i) {
    const Connection fresh(port_);
    EXPECT_TRUE(ask(fresh, "/new")) << "and new ones are served";
  }
  EXPECT_EQ(silent.front()->read(), "") << "the oldest strangers had to go";
}

TEST_F(HttpServer, TheOwnersOldestIdleConnectionMakesRoom) {
  start({.connections = 3, .strangers = 2, .head = 600s, .idle = 600s});
  std::vector<std::unique_ptr<Connection>> owned;
  for (int i = 0; i < 6; ++i) {
    owned.push_back(std::make_unique<Connection>(port_));
    owned.back()->send("GET /a HTTP/1.1\r\nHost: x\r\nSecret: yes\r\n\r\n");
    EXPECT_NE(owned.back()->read("/a").find("/a"), std::string::npos) << i;
  }
}

// Readers that do not read hold no worker.
TEST_F(HttpServer, SlowReadersDoNotKeepOthersWaiting) {
  start({.workers = 2});
  std::vector<std::unique_ptr<Connection>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Connection>(port_));
    slow.back()->send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  const Connection quick(port_);
  quick.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(quick.read().find("you asked for /a"), std::string::npos);
}

// Without descriptors the listening socket stays ready: the loop must wait, and go on when there are some again.
TEST_F(HttpServer, WaitsWhereThereAreNoDescriptors) {
  start({.head = 600s, .idle = 600s});
  const auto processor = [this] {
    timespec used{};
    clockid_t clock{};
    EXPECT_EQ(pthread_getcpuclockid(thread_.native_handle(), &clock), 0);
    clock_gettime(clock, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  const Connection waiting(port_);
  waiting.send("GET /a HTTP/1.1\r\nHost: x\r\nSecret: yes\r\n\r\n");
  EXPECT_NE(waiting.read("/a").find("/a"), std::string::npos);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free_fd = ::open("/dev/null", O_RDONLY);
  ::close(free_fd);
  const rlimit none{static_cast<rlim_t>(free_fd), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto used = processor();
  connect_to(client, port_);
  std::this_thread::sleep_for(1s);
  EXPECT_LT(processor() - used, 300ms) << "a loop that asks again at once takes the whole second";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string request = "GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(client, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  char buffer[4096];
  EXPECT_GT(::recv(client, buffer, sizeof buffer, 0), 0);
  ::close(client);
}

TEST_F(HttpServer, StopsWhileSomebodyIsConnected) {
  start();
  const Connection client(port_);
  server_->stop();
  EXPECT_TRUE(client.is_closed());
}

// A client that connected but was not accepted yet gets an answer too before the server exits.
TEST_F(HttpServer, EndsConnectionsThatItNeverAccepted) {
  start({}, [this](const auto& run) {
    const Connection client(port_);
    server_->stop();
    run();
    EXPECT_TRUE(client.is_closed());
  });
}

// Peers do not wait for an answer that takes long; the server does, since somebody works on it.
TEST(HttpStop, EndsConnectionsBeforeItsWorkIsDone) {
  std::promise<void> asked, release;
  Server server([&](const Request&) {
    asked.set_value();
    release.get_future().wait();
    return Response{};
  });
  const auto port = server.listen("127.0.0.1", 0);
  ASSERT_TRUE(port);
  std::thread running([&] { server.run(); });
  const Connection client(*port);
  client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  asked.get_future().wait();
  server.stop();
  EXPECT_TRUE(client.is_closed());
  release.set_value();
  running.join();
}

TEST(HttpListen, SaysWhyItCannot) {
  Server one([](const Request&) { return Response{}; });
  const auto port = one.listen("127.0.0.1", 0);
  ASSERT_TRUE(port);
  Server two([](const Request&) { return Response{}; });
  const auto taken = two.listen("127.0.0.1", *port);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("; choose another port with --port"), std::string::npos);
  const auto live = two.listen("127.0.0.1", *port, "--live-port");
  ASSERT_FALSE(live);
  EXPECT_NE(live.error().message.find("; choose another port with --live-port"), std::string::npos);
}

}  // namespace

}  // namespace vramscope::serve::http
