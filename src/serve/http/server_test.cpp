#include "serve/http/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace vramscope::serve::http {

namespace {

class Connection {
 public:
  explicit Connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval limit{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Connection() { ::close(fd_); }
  void send(std::string_view text) const {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
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
  void start(Limits limits = {}) {
    server_ = std::make_unique<Server>(
        [](const Request& request) {
          Response response;
          response.body = "you asked for " + request.path;
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
    thread_ = std::thread([this] { server_->run(); });
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
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = client.read();
  EXPECT_NE(all.find("you asked for /a"), std::string::npos);
  EXPECT_NE(all.find("you asked for /b"), std::string::npos);
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
  start({.connections = 1, .idle_seconds = 1, .requests = 2});
  const Connection first(port_);
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(first.read("/a").find("/a"), std::string::npos);
  const Connection second(port_);
  EXPECT_TRUE(second.read().starts_with("HTTP/1.1 503"));
  EXPECT_EQ(first.read(), "");  // idle for a second: closed
}

TEST_F(HttpServer, StopsWhileSomebodyIsConnected) {
  start();
  const Connection client(port_);
  server_->stop();
  EXPECT_EQ(client.read(), "");
}

TEST(HttpListen, SaysWhyItCannot) {
  Server one([](const Request&) { return Response{}; });
  const auto port = one.listen("127.0.0.1", 0);
  ASSERT_TRUE(port);
  Server two([](const Request&) { return Response{}; });
  const auto taken = two.listen("127.0.0.1", *port);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("--port"), std::string::npos);
}

}  // namespace

}  // namespace vramscope::serve::http
