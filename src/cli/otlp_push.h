// --otlp: sends what `top` shows to an OpenTelemetry collector, again and again until it is destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/http/post.h"
#include "support/result.h"

namespace vramscope::cli {

inline constexpr const char* kOtlpHelp =
    "send metrics to the OpenTelemetry collector at this address, such as http://127.0.0.1:4318";

// "http://host:4318": without a path, that of the protocol is used.
Result<serve::http::Url> parse_otlp_address(const std::string& text);

class OtlpPush {
 public:
  // `say` gets a line if the collector cannot be reached, once until it can be again.
  static Result<std::unique_ptr<OtlpPush>> start(const std::string& address, std::function<void(const std::string&)> say);
  ~OtlpPush();  // sends a last time, unless that failed before

 private:
  struct State;
  explicit OtlpPush(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramscope::cli
