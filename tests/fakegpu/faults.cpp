#include "faults.h"

#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fakegpu {
namespace {

struct Failure {
  std::string name;
  std::uint64_t nth;
  bool later_too;
  int code;
  std::atomic<std::uint64_t> calls = 0;
};
struct Latency {
  std::string name;
  std::uint64_t nanoseconds;
};
struct Plan {
  std::deque<Failure> failures;
  std::vector<Latency> latencies;
};

std::vector<std::string> split(const char* text, char separator) {
  std::vector<std::string> parts;
  for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::size_t end = rest.find(separator);
    parts.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  return parts;
}

Plan read_plan() {
  Plan plan;
  for (const std::string& rule : split(std::getenv("FAKEGPU_FAIL"), ',')) {
    const std::vector<std::string> parts = split(rule.c_str(), ':');
    if (parts.size() != 3) continue;
    plan.failures.emplace_back(parts[0], std::strtoull(parts[1].c_str(), nullptr, 10), parts[1].ends_with('+'),
                               std::atoi(parts[2].c_str()));
  }
  for (const std::string& rule : split(std::getenv("FAKEGPU_LATENCY"), ',')) {
    const std::vector<std::string> parts = split(rule.c_str(), '=');
    if (parts.size() == 2) plan.latencies.push_back({parts[0], std::strtoull(parts[1].c_str(), nullptr, 10)});
  }
  return plan;
}

std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

int fault(const char* name) {
  static Plan plan = read_plan();
  for (const Latency& latency : plan.latencies) {
    if (latency.name != "*" && latency.name != name) continue;
    for (const std::uint64_t start = now(); now() - start < latency.nanoseconds;) {
    }
    break;
  }
  for (Failure& failure : plan.failures) {
    if (failure.name != name) continue;
    const std::uint64_t call = ++failure.calls;
    if (call == failure.nth || (failure.later_too && call > failure.nth)) return failure.code;
  }
  return 0;
}

}  // namespace fakegpu
