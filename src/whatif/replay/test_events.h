// Events for tests, written short.
#pragma once

#include <random>
#include <vector>

#include "whatif/event.h"

namespace vramscope::whatif {

class Script {
 public:
  std::uint32_t alloc(Bytes bytes, std::uint16_t stream = 0, std::uint8_t pool = 0) {
    events.push_back({bytes, next_, stream, What::alloc, pool});
    return next_++;
  }
  void free(std::uint32_t block) { events.push_back({0, block, 0, What::free, 0}); }
  void hold(std::uint32_t block) { events.push_back({0, block, 0, What::hold, 0}); }
  void control(What what, Bytes bytes = 0, std::uint8_t pool = 0) { events.push_back({bytes, 0, 0, what, pool}); }
  Events events;

 private:
  std::uint32_t next_ = 0;
};

// A program with blocks of all sizes that a network has, from one byte to 64 MiB, on up to three streams.
inline Events random_program(std::uint64_t seed, std::size_t allocs, unsigned streams = 1, bool empties = false) {
  std::mt19937_64 random(seed);
  Script script;
  std::vector<std::uint32_t> live;
  for (std::size_t i = 0; i < allocs; ++i) {
    const auto bits = static_cast<unsigned>(random() % 27);
    const Bytes bytes = 1 + random() % (Bytes{1} << bits);
    live.push_back(script.alloc(bytes, static_cast<std::uint16_t>(random() % streams)));
    while (live.size() > 200 || (!live.empty() && random() % 100 < 47)) {
      std::swap(live[random() % live.size()], live.back());
      if (random() % 16 == 0) script.hold(live.back());
      script.free(live.back());
      live.pop_back();
    }
    if (empties && random() % 500 == 0) script.control(What::empty_cache);
  }
  return script.events;
}

}  // namespace vramscope::whatif
