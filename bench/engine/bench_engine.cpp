// bench_engine EVENTS [FOLDER]: generates a trace of about so many events (kept in FOLDER), opens it cold and warm, asks every
// query at random places, checks answers against a plain scan of the events, and prints times beside their budgets.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "analyze/attribute/categories.h"
#include "analyze/query/state.h"
#include "training.h"

namespace {

using namespace vramscope;
using namespace vramscope::analyze;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

double resident_gib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1u << 30);
}

// Of all threads: says what an opening costs where other programs use the processors too.
double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto s = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return s(usage.ru_utime) + s(usage.ru_stime);
}

double peak_resident_gib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1u << 20);
}

tracegen::Training program(std::uint64_t events) {
  tracegen::Training t;
  t.layers = 300;
  t.small_blocks = 6;
  t.layer_bytes = 4u << 20;
  t.maker.us_per_event = 1;
  t.steps = static_cast<std::int64_t>(events / (300 * (4 * 6 + 8))) + 1;
  return t;
}

void report(const char* what, double value, const char* unit, double budget) {
  std::printf("  %-34s %10.3f %-4s budget %6.2f  %s\n", what, value, unit, budget, value <= budget ? "ok" : "OVER");
}

struct Times {
  const char* name;
  std::vector<double> ms, processor;  // wall clock, and processor time of all threads
};

double at(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<std::size_t>(static_cast<double>(values.size()) * share))];
}

// The lower of clock and processor time: on a machine that others use too, the clock measures them.
double p99_of(const Times& t) { return std::min(at(t.ms, 0.99), at(t.processor, 0.99)); }

void print(const Times& t) {
  std::printf("  %-24s processor p50 %8.2f  p99 %8.2f ms   wall p50 %8.2f  p99 %8.2f ms  %s\n", t.name, at(t.processor, 0.5),
              at(t.processor, 0.99), at(t.ms, 0.5), at(t.ms, 0.99), p99_of(t) <= 50 ? "ok" : "OVER");
}

// --- the obvious way: a walk over all events or all blocks, without pyramids, lifetime classes or cohorts
// ---------------------------

using Sums = std::vector<Bytes>;  // by category

Sums sums_of(const Store& store, Moment at) {
  Sums out(category_names().size(), 0);
  for (std::uint64_t a = 0; a < store.allocs(); ++a)
    if (store.birth[a] < at && store.death[a] >= at)
      out[static_cast<std::size_t>(shown(store.attributes_of(a).category()))] += store.kind_of(a).granted;
  return out;
}

int wrong_live(const Engine& engine, Moment at) {
  const Store& store = engine.state().store;
  LiveRequest request;
  request.at = "moment:" + std::to_string(at);
  request.limit = 0;
  Live live = engine.live(request).value();
  Sums truth = sums_of(store, at), said(truth.size(), 0);
  for (const Group& g : live.groups)
    for (std::size_t c = 0; c < truth.size(); ++c)
      if (category_names()[c] == g.keys[0]) said[c] += g.bytes;
  Bytes total = 0;
  for (Bytes b : truth) total += b;
  bool map = engine.address_map({request.at, -1, -1, ""}).value().live == total;
  return (said == truth ? 0 : 1) + (live.total == total && engine.live_at(at) == total ? 0 : 1) + (map ? 0 : 1);
}

// Every column must be a state that occurred, and the highest of its stretch.
int wrong_columns(const Engine& engine, const StackedRequest& request) {
  const Store& store = engine.state().store;
  Stacked s = engine.stacked(request).value();
  std::size_t columns = s.high.size(), column = 0;
  int wrong = 0;
  Sums now(category_names().size(), 0);
  Bytes total = 0, highest = 0, said = 0;
  for (Bytes high : s.high) said = std::max(said, high);
  Moment from = columns == 0 ? 0 : s.at.front(), to = columns == 0 ? 0 : s.at.back();
  for (Moment pos = 0; pos <= store.events() && column < columns; ++pos) {
    if (pos >= from && pos <= to) highest = std::max(highest, total);
    for (; column < columns && s.at[column] == pos; ++column) {
      bool same = s.high[column] == total;
      for (std::size_t c = 0; c < now.size(); ++c) same = same && s.peak[c][column] == now[c];
      wrong += same ? 0 : 1;
    }
    if (pos == store.events() || store.ref[pos] == kNone32) continue;
    std::uint64_t alloc = store.ref[pos] >> 1;
    Bytes bytes = store.kind_of(alloc).granted;
    if ((store.ref[pos] & 1) != 0) bytes = Bytes{0} - bytes;
    now[static_cast<std::size_t>(shown(store.attributes_of(alloc).category()))] += bytes;
    total += bytes;
  }
  return wrong + (highest == said ? 0 : 1) + static_cast<int>(columns - column);
}

int wrong_top(const Engine& engine, TopRequest request) {
  const Store& store = engine.state().store;
  request.limit = 0;
  Top top = engine.top(request).value();
  Moment from = request.t0_us == 0 ? 0 : store.moment_at(request.t0_us - 1);
  Moment to = request.t1_us == 0 ? store.events() : store.moment_at(request.t1_us);
  std::map<std::string, Bytes> truth, said;
  std::vector<Bytes> by_kind(store.kinds.size(), 0);
  for (std::uint64_t a = 0; a < store.allocs(); ++a)
    if (store.birth[a] >= from && store.birth[a] < to) by_kind[store.kind[a]] += store.kind_of(a).granted;
  for (std::size_t k = 0; k < by_kind.size(); ++k)
    if (by_kind[k] > 0) truth[std::string(store.text(store.site_of(store.kinds[k]).op))] += by_kind[k];
  for (const Group& g : top.groups) said[g.keys[0]] += g.bytes;
  return said == truth ? 0 : 1;
}

// Requests at random places, and how long each took.
class Questions {
 public:
  explicit Questions(const Engine& engine) : engine_(engine), store_(engine.state().store) {}

  template <typename Request>
  void choose_range(Request& request) {
    double share = std::pow(10.0, -static_cast<double>(random_() % 5));  // the whole trace down to a ten-thousandth
    std::uint64_t end = store_.duration_us();
    auto width = static_cast<std::uint64_t>(static_cast<double>(end) * share);
    request.t0_us = width >= end ? 0 : random_() % (end - width);
    request.t1_us = request.t0_us + width;
  }

  void ask_all() {
    ask_about_time();
    ask_about_moments();
    time("ledger", 20, [&] { (void)engine_.ledger("peak").value(); });
    time("steps", 20, [&] { (void)engine_.steps(); });
    time("layers", 20, [&] { (void)engine_.layers().value(); });
    time("leaks", 5, [&] { (void)engine_.leaks().value(); });
    time("fragmentation", 5, [&] { (void)engine_.fragmentation().value(); });
  }

  // The number of answers that differ from the obvious way.
  int count_wrong() {
    int wrong = 0;
    for (int i = 0; i < 5; ++i) wrong += wrong_live(engine_, random_() % (store_.events() + 1));
    for (int i = 0; i < 3; ++i) {
      StackedRequest stacked;
      TopRequest top;
      if (i > 0) {
        choose_range(stacked);
        choose_range(top);
      }
      wrong += wrong_columns(engine_, stacked) + wrong_top(engine_, top);
    }
    return wrong;
  }

  const std::vector<Times>& times() const { return times_; }

 private:
  void time(const char* name, int count, const std::function<void()>& ask) {
    Times t{name, {}, {}};
    for (int i = 0; i < count; ++i) {
      auto from = Clock::now();
      double before = processor_seconds();
      ask();
      t.processor.push_back((processor_seconds() - before) * 1e3);
      t.ms.push_back(seconds(from) * 1e3);
    }
    times_.push_back(std::move(t));
  }

  std::string moment() { return "moment:" + std::to_string(random_() % store_.events()); }

  void ask_about_time() {
    time("stacked by category", 200, [&] {
      StackedRequest request;
      choose_range(request);
      (void)engine_.stacked(request).value();
    });
    time("stacked by layer", 200, [&] {
      StackedRequest request;
      choose_range(request);
      request.by = By::layer;
      (void)engine_.stacked(request).value();
    });
    time("top by op", 100, [&] {
      TopRequest request;
      choose_range(request);
      (void)engine_.top(request).value();
    });
    time("events", 200, [&] {
      EventsRequest request;
      choose_range(request);
      (void)engine_.events(request).value();
    });
  }

  void ask_about_moments() {
    time("live by category, layer", 200, [&] {
      LiveRequest request;
      request.at = moment();
      request.by = {By::category, By::layer};
      (void)engine_.live(request).value();
    });
    time("live blocks, filtered", 200, [&] {
      LiveRequest request;
      request.at = moment();
      request.by = {};
      request.where = "phase:backward and size>1KiB";
      (void)engine_.live(request).value();
    });
    time("address map", 200, [&] {
      MapRequest request;
      request.at = moment();
      (void)engine_.address_map(request).value();
    });
    time("allocation", 200, [&] { (void)engine_.allocation(random_() % store_.allocs()).value(); });
    time("diff of two moments", 200, [&] {
      DiffRequest request;
      request.a = moment();
      request.b = moment();
      (void)engine_.diff(request).value();
    });
  }

  const Engine& engine_;
  const Store& store_;
  std::mt19937_64 random_{1};
  std::vector<Times> times_;
};

Status generate(const fs::path& path, std::uint64_t events) {
  if (fs::exists(path)) return {};
  auto start = Clock::now();
  auto truth = tracegen::write_training(path, program(events));
  if (!truth) return std::unexpected(truth.error());
  std::printf("generated %llu events, %.1f MB in %.1f s\n", static_cast<unsigned long long>(truth->events),
              static_cast<double>(fs::file_size(path)) / 1e6, seconds(start));
  return {};
}

// Seconds to open without an index, and then with it.
struct Opening {
  double first = 0, first_processor = 0, later = 0;
  double resident_gib = 0;  // at most, while the index was built
};

Result<Opening> open_twice(const fs::path& path, const OpenOptions& options) {
  Opening out;
  double processor = processor_seconds();
  auto start = Clock::now();
  {
    auto engine = Engine::open(path, options);
    if (!engine) return std::unexpected(engine.error());
    out.first = seconds(start);
    out.first_processor = processor_seconds() - processor;
  }
  out.resident_gib = peak_resident_gib();
  start = Clock::now();
  auto engine = Engine::open(path, options);
  out.later = seconds(start);
  if (!engine) return std::unexpected(engine.error());
  return out;
}

void print_opening(const fs::path& path, const fs::path& cache, const Store& store, const Opening& opening) {
  double index_bytes = 0;
  for (const auto& entry : fs::directory_iterator(cache))
    if (entry.path().extension() == ".index") index_bytes = static_cast<double>(entry.file_size());
  const auto events = static_cast<double>(store.events());
  std::printf("%llu events, %llu allocations, index %.2f B per event\n", static_cast<unsigned long long>(store.events()),
              static_cast<unsigned long long>(store.allocs()), index_bytes / events);
  report("index, times the trace", index_bytes / static_cast<double>(fs::file_size(path)), "", 5);
  report("first open", opening.first, "s", 10);
  std::printf("  %-34s %10.1f ns\n", "first open, per event", opening.first * 1e9 / events);
  std::printf("  %-34s %10.3f s\n", "first open, processor time", opening.first_processor);
  report("later open", opening.later, "s", 0.5);
}

double seconds_of_new_grouping(const Engine& engine) {
  auto start = Clock::now();
  StackedRequest request;
  request.by = By::layer;
  if (const auto answer = engine.stacked(request); !answer) std::fprintf(stderr, "%s\n", answer.error().message.c_str());
  return seconds(start);
}

void print_json(const Store& store, const Opening& opening, const std::vector<Times>& times, double resident, int wrong) {
  const auto events = static_cast<double>(store.events());
  std::printf(
      "{\"events\": %llu, \"first_open_s\": %.3f, \"processor_ns_an_event\": %.2f, \"later_open_s\": %.4f, \"query_p99_ms\": {",
      static_cast<unsigned long long>(store.events()), opening.first, opening.first_processor * 1e9 / events, opening.later);
  for (std::size_t i = 0; i < times.size(); ++i)
    std::printf("%s\"%s\": %.3f", i > 0 ? ", " : "", times[i].name, p99_of(times[i]));
  std::printf("}, \"resident_gib\": %.3f, \"wrong\": %d}\n", std::max(opening.resident_gib, resident), wrong);
}

Result<int> measure(std::uint64_t events, const fs::path& folder) {
  const fs::path path = folder / ("engine-" + std::to_string(events) + ".vram"), cache = folder / "engine-cache";
  if (const Status generated = generate(path, events); !generated) return std::unexpected(generated.error());
  fs::remove_all(cache);
  OpenOptions options;
  options.cache = cache;
  const auto opening = open_twice(path, options);
  if (!opening) return std::unexpected(opening.error());
  const auto engine = Engine::open(path, options);
  if (!engine) return std::unexpected(engine.error());
  const Store& store = engine->state().store;
  print_opening(path, cache, store, *opening);

  const double grouping = seconds_of_new_grouping(*engine);
  Questions questions(*engine);
  questions.ask_all();
  for (const Times& t : questions.times()) print(t);
  std::printf("  first use of a new grouping: %.2f s\n", grouping);
  const double resident = resident_gib();
  report("resident after all queries", resident, "GiB", 3);
  report("resident at most while building", opening->resident_gib, "GiB", 3);
  const int wrong = questions.count_wrong();
  std::printf("  answers that differ from a walk over everything: %d\n", wrong);
  print_json(store, *opening, questions.times(), resident, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_engine EVENTS [FOLDER]\n");
    return 2;
  }
  const auto done = measure(std::strtoull(argv[1], nullptr, 10), argc > 2 ? fs::path(argv[2]) : fs::temp_directory_path());
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? *done : 2;
}
