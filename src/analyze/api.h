// The only interface to a trace. CLI, server, Python and exporters call this class and only display its answers.
//
// Every method is const and thread-safe. Answers are exact. A method returns an error, one sentence for the user, for an invalid
// `where`, an invalid instant or a place that does not exist. A question that the trace cannot answer is not an error: the
// `sentence` or `why` of the answer gives the reason.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answers.h"
#include "support/result.h"

namespace vramscope::analyze {

struct OpenOptions {
  bool keep_index = true;  // use the user's cache of indexes, and keep an index there if building it took long
  unsigned threads = 2;
  std::filesystem::path cache = {};  // the folder of the cache; empty = $XDG_CACHE_HOME/vramscope or ~/.cache/vramscope
  double index_after_s = 0.3;        // what counts as long
};

class Engine {
 public:
  // Opens a .vram file with its index from the cache, or builds the index. Writes nothing next to the trace.
  static Result<Engine> open(const std::filesystem::path& trace, const OpenOptions& options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Identity, size, places with their peaks, settings, losses; the sentence is what the run needs, without findings (headline()).
  Overview overview() const;
  std::span<const Place> places() const;
  int main_place() const;                       // the device with the highest tensor-level peak; host only if there is no device
  std::vector<std::string> pool_names() const;  // index = pool id
  Steps steps(int place = -1) const;
  Result<Steps> steps(int place, std::string_view where) const;  // of matching blocks; the steps stay the same
  std::vector<Phase> phases(int place = -1) const;
  Result<std::vector<Phase>> phases(int place, std::string_view where) const;
  std::vector<Mark> marks(std::uint64_t t0_us, std::uint64_t t1_us,
                          std::string_view kind = {}) const;  // kind: schema word, empty = all but layers
  std::vector<Sample> samples() const;                        // device and host samples in order
  Bytes regions_at(Moment at, int place = -1) const;

  // "peak", "steady", "end", "start", "step:N" (its peak), "step:N+6.3ms", "6.244485s", "250ms", "oom", "oom:2", "moment:N".
  Result<Moment> resolve(std::string_view instant, int place = -1) const;
  Moment moment_at(std::uint64_t time_us) const;  // after all events up to and including that time
  std::uint64_t time_of(Moment at) const;
  Bytes live_at(Moment at, int place = -1) const;  // total only; cheap

  Result<Stacked> stacked(const StackedRequest& request) const;
  Result<Live> live(const LiveRequest& request) const;
  Result<Live> peak(const LiveRequest& request) const;  // with its sentence
  Result<Top> top(const TopRequest& request) const;
  Result<AddressMap> address_map(const MapRequest& request) const;
  Result<Diff> diff(const DiffRequest& request) const;
  Result<Block> allocation(std::uint64_t id) const;
  std::vector<Frame> stack(std::uint32_t id) const;  // innermost first
  // A file as lines name it: by its last parts, or in full. Never opens that file.
  KeptSource source(std::string_view file) const;
  Result<std::vector<MemoryEvent>> events(const EventsRequest& request) const;
  std::vector<Completion> complete(std::string_view text, std::size_t limit = 12) const;  // for the filter box
  Status check_filter(std::string_view where) const;
  // An error for a filter that no block matches: an answer about nothing would read like one about the program. An empty filter
  // is always valid. `place` -1 = main; kEveryPlace = the whole trace.
  static constexpr int kEveryPlace = -2;
  Status check_matches(std::string_view where, int place = -1) const;

  // The same requests with other allocators and settings.
  Result<Whatif> whatif(const WhatifRequest& request) const;

#include "analyze/gen/methods.inc"  // those of schema/answers: ledger, layers, leaks, fragmentation, ...
  Ooms ooms() const;
  Result<Ooms> ooms(std::string_view where) const;  // narrows what is shown as live, not the verdict
  Findings findings() const;
  // Figures of the whole recording, with overview, steps, phases, categories and findings; a filter narrows steps, phases and
  // categories.
  Summary summary(std::string_view where = {}) const;

  struct State;  // inside analyze/ only
  const State& state() const { return *state_; }

 private:
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// "at the steady peak", "at the peak", "at the end"; empty for other instants. "steady" is the peak if there is no steady state.
std::string_view instant_words(const Engine& engine, std::string_view at, int place = -1);

// Names, in the order of their numbers; category_names() is also the order of stacks (long-lived ones at the bottom).
std::span<const std::string_view> category_names();
std::span<const std::string_view> by_names();
Result<By> by_from(std::string_view word);

// A file, or each trace of a run folder (newest layout: <host>-<pid>-<start>.vram), sorted by name.
Result<std::vector<std::filesystem::path>> traces_in(const std::filesystem::path& file_or_folder);

// The sentence about a run, worst first: the program died, ran out of memory, leaks, has a fault, wastes memory; otherwise what
// it needs. `overview` and `findings` are those of one engine.
std::string headline(const Overview& overview, const Findings& findings);
// The same from the trace; an error if it cannot be read.
Result<std::string> headline_of(const std::filesystem::path& trace);

// Only the figures of a summary, read from the events without building or using an index. For the last line of a recording.
Result<Summary> summarize(const std::filesystem::path& trace);
// The figures in one sentence.
std::string summary_sentence(const Summary& summary);
// The same without what the recording lacks.
std::string figures_sentence(const Summary& summary);
// The same with `headline` in place of the peak.
std::string summary_sentence(const Summary& summary, std::string_view headline);
// Device pools before host pools, then by size.
const PoolSummary* main_pool(const Summary& summary);

// What is wrong with a run, for a list of runs: "out of memory", "grows", "killed by SIGKILL in step 41", or nothing.
std::string trouble_of(const Engine& engine, const Leaks& leaks);

// Two or more runs, each at its own steady peak (its peak if there is no steady state), and all at the same place.
Result<Compare> compare(std::span<const Engine* const> runs, std::span<const std::string> names, std::string_view where = {});

// What the change of a row consists of, given the same split by category: "gradients +1.0 MiB, activations −0.3 MiB". Empty if
// nothing changed.
std::string why_changed(const CompareRow& row, std::vector<CompareRow> parts);
// "+1.0 MiB", "−0.3 MiB"
std::string signed_size(std::int64_t change);

// Which batch size fits: from recordings of one program at different batch sizes, or from a single one with a wider error.
// What can be said of a request before there are recordings.
Status check_device(const FitRequest& request);
Result<Fit> fit(std::span<const Engine* const> runs, std::span<const std::string> names, const FitRequest& request);

// Limits against a trace. `budget` is the text of the file (TOML, docs/guide/check.md); `baseline` may be NULL. A filter
// narrows the limits on live bytes and growth to matching blocks.
Result<Check> check(const Engine& engine, std::string_view budget, const Engine* baseline, std::string_view where = {});

}  // namespace vramscope::analyze
