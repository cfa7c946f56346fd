// How long replays take, in time of the processor and by allocator, on steps that repeat: replay_speed EVENTS.
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "whatif/replay/replay.h"

namespace {

using namespace vramscope::whatif;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Forward: layers of blocks of all sizes, a third of which stays. Backward: temporaries, and what stayed is freed in reverse.
Events steps(std::size_t events, std::size_t events_of_step) {
  std::mt19937_64 random(1);
  const std::size_t allocs = events_of_step / 2;
  std::vector<Bytes> sizes(allocs);
  for (Bytes& bytes : sizes) bytes = 4 + 4 * (random() % (Bytes{1} << (8 + random() % 17)));
  Events out;
  std::uint32_t next = 0;
  while (out.size() < events) {
    std::vector<std::uint32_t> kept, temporary;
    const auto release = [&](std::vector<std::uint32_t>& blocks, std::size_t at) {
      out.push_back({0, blocks[at], 0, What::free, 0});
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (std::size_t i = 0; i < allocs; ++i) {
      const bool forward = i < allocs / 2;
      out.push_back({sizes[i], next, 0, What::alloc, 0});
      (forward && i % 3 == 0 ? kept : temporary).push_back(next++);
      if (temporary.size() > 3) release(temporary, 0);
      if (!forward && i % 3 == 0 && !kept.empty()) release(kept, kept.size() - 1);
    }
    while (!temporary.empty()) release(temporary, temporary.size() - 1);
    while (!kept.empty()) release(kept, kept.size() - 1);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  constexpr std::size_t kStep = 3000;
  const Events run = steps(std::strtoull(argv[1], nullptr, 10), kStep), step = steps(1, kStep);
  std::string whole, single;
  for (const auto& [name, kind, settings] :
       {std::tuple{"torch", Scenario::Kind::torch, ""},
        std::tuple{"expandable", Scenario::Kind::torch, "expandable_segments:True"}, std::tuple{"bfc", Scenario::Kind::bfc, ""},
        std::tuple{"async", Scenario::Kind::stream_pool, ""}}) {
    Scenario scenario;
    scenario.kind = kind;
    scenario.torch = TorchSettings::parse(settings, 211).value();
    const double begin = cpu_seconds();
    const bool completed = replay(run, scenario).completed();
    const double middle = cpu_seconds();
    if (!completed || !smallest_capacity(step, scenario)) return 1;
    const std::string separator = whole.empty() ? "" : ", ";
    whole += fmt::format("{}\"{}\": {:.3f}", separator, name, middle - begin);
    single += fmt::format("{}\"{}\": {:.2f}", separator, name, 1e3 * (cpu_seconds() - middle));
  }
  fmt::print("{{\"events\": {}, \"replay_s\": {{{}}}, \"step_ms\": {{{}}}}}\n", run.size(), whole, single);
  return 0;
}
