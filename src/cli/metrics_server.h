// The endpoint of --metrics: what `top` shows, for Prometheus to scrape.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/result.h"

namespace vramscope::cli {

// ":9400" is port 9400 of this machine alone; "0.0.0.0:9400" can be reached from others.
struct MetricsAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};
Result<MetricsAddress> parse_metrics_address(const std::string& text);

class MetricsServer {
 public:
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& address);
  ~MetricsServer();  // stops
  const std::string& url() const { return url_; }
  std::string announcement() const { return "vramscope: metrics at " + url_ + "\n"; }

 private:
  struct State;
  MetricsServer();
  std::unique_ptr<State> state_;
  std::string url_;
};

}  // namespace vramscope::cli
