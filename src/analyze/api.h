// The one way to ask a trace. CLI, server, Python and exporters call this class and only show what it answers.
//
// Every method is const and thread-safe. Answers are exact. A method returns an error for a bad `where`, a bad instant or a
// place that does not exist: one sentence for a person. A question that the trace cannot answer is not an error: the
// answer says so in its `sentence` or `why`.
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
  bool keep_index = true;  // write the index beside the trace (where that folder is writable) and use it next time
  unsigned threads = 2;
  std::filesystem::path index = {};  // where the index is; empty = <trace>.index
};

class Engine {
 public:
  // Opens a .vram file: maps its index if there is one that belongs to exactly this trace, else builds it.
  static Result<Engine> open(const std::filesystem::path& trace, const OpenOptions& options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Identity, size, places with their peaks, settings, losses.
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
  Result<Top> top(const TopRequest& request) const;
  Result<AddressMap> address_map(const MapRequest& request) const;
  Result<Diff> diff(const DiffRequest& request) const;
  Result<Block> allocation(std::uint64_t id) const;
  std::vector<Frame> stack(std::uint32_t id) const;  // innermost first
  Result<std::vector<MemoryEvent>> events(const EventsRequest& request) const;
  std::vector<Completion> complete(std::string_view text, std::size_t limit = 12) const;  // for the filter box
  Status check_filter(std::string_view where) const;
  // An error for a filter that no block matches: an answer about nothing would read like one about the program. An empty filter
  // is always fine. `place` -1 = main; kEveryPlace = the whole trace.
  static constexpr int kEveryPlace = -2;
  Status check_matches(std::string_view where, int place = -1) const;

  // A filter narrows the lines below the pool; card, process and pool know no blocks.
  Result<Ledger> ledger(std::string_view at = "peak", int place = -1, std::string_view where = {}) const;
  Result<Layers> layers(std::string_view at = "steady", int place = -1, std::string_view where = {}) const;
  Result<Leaks> leaks(int place = -1, std::string_view where = {}) const;
  Result<Fragmentation> fragmentation(int place = -1, std::string_view where = {}) const;
  Ooms ooms() const;
  Result<Ooms> ooms(std::string_view where) const;  // narrows what is shown as live, not the verdict
  Findings findings() const;

  struct State;  // inside analyze/ only
  const State& state() const { return *state_; }

 private:
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Names, in the order of their numbers; category_names() is also the order of stacks (what stays is below).
std::span<const std::string_view> category_names();
std::span<const std::string_view> by_names();
Result<By> by_from(std::string_view word);

// A file, or each trace of a run folder (newest layout: <host>-<pid>-<start>.vram), sorted by name.
Result<std::vector<std::filesystem::path>> traces_in(const std::filesystem::path& file_or_folder);

// Two or more runs, each at its own steady peak (its peak where there is no steady state), and all at the same place.
Result<Compare> compare(std::span<const Engine* const> runs, std::span<const std::string> names, std::string_view where = {});

// Limits against a trace. `budget` is the text of the file (TOML or YAML, docs/guide/check.md); `baseline` may be NULL. A filter
// narrows the limits on live bytes and growth to matching blocks.
Result<Check> check(const Engine& engine, std::string_view budget, const Engine* baseline, std::string_view where = {});

}  // namespace vramscope::analyze
