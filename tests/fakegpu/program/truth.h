// What the program knows it did, printed as one JSON object: the oracle of the recording.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace program {

class Truth {
 public:
  void allocated(const std::string& kind, std::uint64_t bytes) {
    std::scoped_lock guard(lock_);
    Counters& c = kinds_[kind];
    ++c.allocs;
    c.live += bytes;
    if (c.live > c.peak) c.peak = c.live;
  }
  void freed(const std::string& kind, std::uint64_t bytes) {
    std::scoped_lock guard(lock_);
    ++kinds_[kind].frees;
    kinds_[kind].live -= bytes;
  }
  void refused(const std::string& kind) {
    std::scoped_lock guard(lock_);
    ++kinds_[kind].refused;
  }

  void print() const {
    std::printf("{");
    const char* separator = "";
    for (const auto& [kind, c] : kinds_) {
      std::printf("%s\"%s\": {\"allocs\": %llu, \"frees\": %llu, \"peak\": %llu, \"end\": %llu, \"refused\": %llu}", separator,
                  kind.c_str(), c.allocs, c.frees, c.peak, c.live, c.refused);
      separator = ", ";
    }
    std::printf("}\n");
  }

 private:
  struct Counters {
    unsigned long long allocs = 0, frees = 0, live = 0, peak = 0, refused = 0;
  };
  std::mutex lock_;
  std::map<std::string, Counters> kinds_;
};

}  // namespace program
