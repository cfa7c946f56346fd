// tracegen CASE FILE [key=value ...]: writes a trace with a chosen truth and prints that truth as JSON.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "forged.h"
#include "training.h"
#include "troubles.h"

using vramscope::tracegen::Maker;
using vramscope::tracegen::Training;

namespace {

// Names that a page, a report or a terminal must not fall for.
const std::vector<std::string> kHostile = {"<img src=x onerror=\"window.hacked=1\">",
                                           "</script><script>window.hacked=1</script>",
                                           "<!--<script>",
                                           "bell\a\x1b[31m\x1b]0;title\a",
                                           "\u202egnp.exe\u202c",
                                           "{@html 'x'}${window.hacked=1}`",
                                           "line\u2028feed\r\n",
                                           "\xff\xfe not text",
                                           "::error file=train.py::bought",
                                           " \u3000::stop-commands::x",
                                           "a###[error]bought ##vso[task.setvariable]x",
                                           std::string(10'000, 'x')};

// Names of 40 KiB that pack to nothing.
std::vector<std::string> long_names() {
  std::vector<std::string> names;
  for (char c = 'a'; c <= 'z'; ++c) names.emplace_back(40 * 1024, c);
  return names;
}

// Long because it is a table.
const std::map<std::string, std::function<void(Training&)>> kCases = {
    {"clean", [](Training&) {}},
    {"autotune", [](Training& t) { t.autotune_bytes = 64u << 20; }},
    {"xla", [](Training& t) { t.xla_bytes = 3u << 20; }},
    {"pytorch", [](Training& t) { t.maker.framework = vramscope::trace::Framework::pytorch; }},
    {"leak", [](Training& t) { t.leak_bytes = 64u << 10; }},
    {"larger", [](Training& t) { t.growing_block = 64u << 10; }},
    {"warmup",
     [](Training& t) {
       t.warmup_steps = 5;
       t.cache_bytes = 1u << 20;
     }},
    {"saturating",
     [](Training& t) {
       t.saturating_bytes = 64u << 20;
       t.saturating_steps = 10;
     }},
    {"noise", [](Training& t) { t.noise = 256u << 10; }},
    {"shapes", [](Training& t) { t.variable_shapes = true; }},
    {"devices", [](Training& t) { t.devices = 2; }},
    {"small", [](Training& t) { t.layer_bytes = t.weight_bytes = 8u << 10; }},
    {"nomarks", [](Training& t) { t.marks = t.tags = false; }},
    {"eager",
     [](Training& t) {
       t.marks = t.tags = false;
       t.eager = true;
     }},
    {"toobig", [](Training& t) { t.maker.pool.limit = 6u << 20; }},
    {"killed",
     [](Training& t) {
       t.killed = true;
       t.leak_bytes = 1u << 20;
       t.maker.pool.limit = 48u << 20;
     }},
    {"hostile",
     [](Training& t) {
       t.names = kHostile;
       t.layers = static_cast<int>(kHostile.size());
       t.steps = 8;
     }},
    {"longnames",
     [](Training& t) {
       t.names = long_names();
       t.layers = 60;
       t.steps = 20;
     }},
    // 50 encoder layers of four parts each, named as large models name them.
    {"transformer",
     [](Training& t) {
       t.maker.framework = vramscope::trace::Framework::pytorch;
       t.layers = 200;
       t.nested = true;
       t.small_blocks = 1;
       t.steps = 6;
     }},
    // About 100 events a layer and step; events=N picks the number of steps.
    {"large",
     [](Training& t) {
       t.layers = 200;
       t.small_blocks = 6;
       t.layer_bytes = 4u << 20;
     }},
};

// Traces that lack something.
const std::map<std::string, std::function<void(Maker&)>> kOdd = {
    {"empty", [](Maker&) {}},
    {"one", [](Maker& m) { m.alloc({"Relu", "output", 1024}); }},
    {"xlaplans",
     [](Maker& m) {
       m.alloc({"Relu", "output", 1024});
       m.setting("xla.plans", "xla-plans");
     }},
    {"nofrees",
     [](Maker& m) {
       for (int i = 0; i < 5000; ++i) m.alloc({"Relu", "output", 512});
     }},
    {"million",
     [](Maker& m) {
       for (int i = 0; i < 1'000'000; ++i) m.alloc({i % 2 == 0 ? "Relu" : "Add", "output", 256});
     }},
    // Each block takes the place of one that another op freed just before, or a little earlier.
    {"handed_on",
     [](Maker& m) {
       std::vector<vramscope::tracegen::Handle> live;
       std::uint64_t random = 1;
       for (int i = 0; i < 20'000; ++i) {
         random = random * 6364136223846793005u + 1442695040888963407u;
         const std::uint64_t draw = random >> 33;
         for (std::uint64_t freed = 0; live.size() > 60 && freed <= draw % 3; ++freed) {
           std::swap(live[draw % live.size()], live.back());
           m.free(live.back());
           live.pop_back();
         }
         if (const auto block = m.alloc({"Op" + std::to_string(draw % 11), "output", std::uint64_t{1024} << draw % 3}))
           live.push_back(*block);
       }
     }},
};

int write_odd(const std::string& name, const char* path) {
  auto maker = Maker::create(path, {});
  if (!maker) {
    std::fprintf(stderr, "tracegen: %s\n", maker.error().message.c_str());
    return 2;
  }
  kOdd.at(name)(*maker);
  return maker->finish() ? 0 : 2;
}

int usage() {
  std::fprintf(stderr,
               "usage: tracegen CASE FILE [seed=N] [steps=N] [layers=N] [leak=BYTES] [every=N] [noise=BYTES] [events=N] "
               "[limit=BYTES] [growth=0|1] [teardown=0|1] [rank=N] [signal=N] [card=BYTES]\ncases:");
  for (const auto& [name, set] : kCases) std::fprintf(stderr, " %s", name.c_str());
  for (const auto& [name, write] : kOdd) std::fprintf(stderr, " %s", name.c_str());
  for (const std::string& name : vramscope::tracegen::forged_cases()) std::fprintf(stderr, " %s", name.c_str());
  for (const std::string& name : vramscope::tracegen::trouble_cases()) std::fprintf(stderr, " %s", name.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && kOdd.contains(argv[1])) return write_odd(argv[1], argv[2]);
  for (const std::string& name : vramscope::tracegen::forged_cases())
    if (argc == 3 && name == argv[1]) return vramscope::tracegen::write_forged(name, argv[2]) ? 0 : 2;
  for (const std::string& name : vramscope::tracegen::trouble_cases())
    if (argc == 3 && name == argv[1]) return vramscope::tracegen::write_trouble(name, argv[2]) ? 0 : 2;
  if (argc < 3 || !kCases.contains(argv[1])) return usage();
  Training program;
  kCases.at(argv[1])(program);
  for (int i = 3; i < argc; ++i) {
    std::string arg = argv[i];
    std::size_t equals = arg.find('=');
    if (equals == std::string::npos) return usage();
    std::string key = arg.substr(0, equals);
    auto value = std::strtoull(arg.c_str() + equals + 1, nullptr, 10);
    if (key == "seed")
      program.seed = value;
    else if (key == "steps")
      program.steps = static_cast<std::int64_t>(value);
    else if (key == "layers")
      program.layers = static_cast<int>(value);
    else if (key == "leak")
      program.leak_bytes = value;
    else if (key == "every")
      program.leak_every = static_cast<std::int64_t>(value);
    else if (key == "noise")
      program.noise = static_cast<double>(value);
    else if (key == "limit")
      program.maker.pool.limit = value;
    else if (key == "growth")
      program.maker.pool.growth = value != 0;
    else if (key == "rank")
      program.rank = static_cast<std::int64_t>(value);
    else if (key == "signal")
      program.signal = static_cast<std::int64_t>(value);
    else if (key == "card")
      program.card = value;
    else if (key == "teardown")
      program.teardown = value != 0;
    else if (key == "events")
      program.steps =
          static_cast<std::int64_t>(value / static_cast<unsigned>(program.layers * (4 * program.small_blocks + 8) + 4)) + 1;
    else
      return usage();
  }
  auto truth = vramscope::tracegen::write_training(argv[2], program);
  if (!truth) {
    std::fprintf(stderr, "tracegen: %s\n", truth.error().message.c_str());
    return 2;
  }
  std::printf(
      "{\"events\": %llu, \"allocs\": %llu, \"peak\": %llu, \"steady_peak\": %llu, \"end\": %llu, \"steps\": %zu, \"oom\": %s}\n",
      static_cast<unsigned long long>(truth->events), static_cast<unsigned long long>(truth->allocs),
      static_cast<unsigned long long>(truth->peak), static_cast<unsigned long long>(truth->steady_peak),
      static_cast<unsigned long long>(truth->end), truth->step_peak.size(), truth->out_of_memory ? "true" : "false");
  return 0;
}
