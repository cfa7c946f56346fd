// What the engine is asked and what it answers: plain data, no transport, no formatting. JSON of the same names: json.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramscope::analyze {

// A layer in a sentence: the parts of PyTorch's Sequential are called by their number alone.
inline std::string layer_in_words(std::string_view name) {
  const bool number = !name.empty() && name.front() >= '0' && name.front() <= '9';
  return number ? "layer " + std::string(name) : std::string(name);
}

using Bytes = std::uint64_t;

// A point in the order of events: the state after the first `Moment` events of the trace. 0 = nothing happened yet. Order is the
// sequence number's; two moments can have the same time.
using Moment = std::uint64_t;

// What blocks can be grouped by. The same words stand in --by, in the filter language and in the UI's address.
enum class By : std::uint8_t {
  category,
  layer,
  op,
  line,
  stack,
  dtype,
  shape,
  size,
  phase,
  step,
  pool,
  stream,
  owner,
  region,
  name,
  known,
  device,
};
inline constexpr std::size_t kByCount = 17;

// A set of pools whose blocks may be added up: one level on one device, or one kind of host memory.
struct Place {
  std::string name;          // "GPU 0", "host", "pinned host", "GPU 0 driver"
  std::int64_t device = -1;  // -1 = host
  bool driver = false;       // driver level; else tensor level
  std::vector<std::uint32_t> pools;
  std::uint64_t allocs = 0;
  Bytes peak = 0;  // live (granted) bytes at the highest moment, over all pools of the place
  Moment peak_at = 0;
  Bytes steady_peak = 0;  // the same over the steady steps; 0 when there are none
  Moment steady_peak_at = 0;
  Bytes end = 0;           // live at the end
  Bytes regions_peak = 0;  // most that the pools held from the level below
  Bytes regions_end = 0;
  Bytes limit = 0;          // sum of the pools' limits, 0 = unknown
  bool order_exact = true;  // false: show the peak as "at least"
  bool steady = false;      // steady_peak holds
};

// One training step (or evaluation batch) and what memory did in it. Steps are numbered from 1 within their kind.
struct Step {
  std::int64_t number = 0;
  std::string kind;           // train, evaluate, predict, or the mark's own word; run: found, and nothing in it trains
  std::int64_t batches = 1;   // that it runs: more than one with steps_per_execution; 0: several, nobody told how many
  std::int64_t epoch = 0;     // 0 = not told
  Moment begin = 0, end = 0;  // states: before its first and after its last memory event
  std::uint64_t begin_us = 0, end_us = 0;
  bool warmup = false;   // tracing, compiling, autotuning: not steady
  bool outlier = false;  // peak differs from its neighbours' by more than noise; `why` says how
  std::string why;
  Bytes peak = 0;
  Moment peak_at = 0;
  Bytes before = 0, after = 0;  // live at begin and at end
  std::int64_t growth = 0;      // after - before
  Bytes allocated = 0, freed = 0;
  std::uint64_t allocs = 0, frees = 0;
  double churn = 0;  // allocated / peak
  Bytes forward_peak = 0, backward_peak = 0,
        optimizer_peak = 0;  // highest live while an op of that phase allocated; 0 = none seen
  Bytes before_optimizer = 0, after_optimizer = 0;
};

struct Steps {
  std::string sentence;
  std::string source;                               // "told" (marks), "found" (repeated function runs), "none"
  std::string why;                                  // where source is "none": why it cannot tell
  std::uint64_t steady_first = 0, steady_last = 0;  // indices into steps; first > last: no steady state
  bool has_steady = false;
  std::vector<Step> steps;
};

// A stretch of the program. Phases may overlap.
struct Phase {
  std::string name;  // import, build, trace, compile, autotune, first step, steady steps, evaluation, save, user scopes
  Moment begin = 0, end = 0;
  std::uint64_t begin_us = 0, end_us = 0;
  Bytes peak = 0;  // highest live in the place
  Moment peak_at = 0;
  Bytes growth_kept = 0;  // allocated in it and still live at its end
  Bytes allocated = 0;
  std::uint64_t allocs = 0;
  Bytes host_peak = 0;  // highest resident set seen in it; 0 = no sample
};

// One bucket of live blocks.
struct Group {
  std::vector<std::string> keys;  // one for each `by` of the request; "" = not known (show "–")
  Bytes bytes = 0;                // granted
  Bytes requested = 0;
  std::uint64_t count = 0;
  std::uint64_t oldest_us = 0;  // birth of its oldest block
  std::uint64_t newest_us = 0;  // birth of its newest block
  std::uint64_t example = 0;    // id of its largest block
};

struct Block {
  std::uint64_t id = 0;  // allocation ordinal: names it in the whole trace
  std::uint64_t address = 0;
  Bytes requested = 0, granted = 0;
  Moment birth = 0, death = 0;  // live in every moment m with birth <= m < death; death = kNever: live at the end
  std::uint64_t birth_us = 0, death_us = 0;
  std::uint32_t pool = 0;
  std::string pool_name, category, known, layer, op, region, dtype, shape, phase, line, name, owner;
  std::uint64_t stream = 0;
  std::int64_t step = 0;    // number of the step it was born in, 0 = outside
  std::uint32_t stack = 0;  // id for stack()
};
inline constexpr Moment kNever = ~Moment{0};

struct Frame {
  std::string function, file;
  std::uint64_t line = 0, offset = 0;
};

// --- requests and their answers -----------------------------------------------------------------------------------------------

struct StackedRequest {
  std::uint64_t t0_us = 0, t1_us = 0;  // t1 = 0: to the end
  std::uint32_t width = 1600;          // columns wanted; fewer come where there are fewer events
  By by = By::category;
  std::string where;
  int place = -1;             // index into places(), -1 = main
  std::uint32_t groups = 12;  // at most; the last is "other"
};
// Columns of equal time. Each is the composition at the highest instant inside it: a state that really occurred.
struct Stacked {
  std::vector<std::string> groups;       // order of `peak` rows; category order for By::category, else by size, "other" last
  std::vector<std::uint64_t> time_us;    // of each column's peak instant
  std::vector<Moment> at;                // that instant
  std::vector<std::uint64_t> border_us;  // columns + 1
  std::vector<Bytes> low;                // lowest total in the column
  std::vector<Bytes> high;               // total at the instant (= highest in the column)
  std::vector<std::vector<Bytes>> peak;  // [group][column]
  std::vector<std::uint64_t> events;     // memory events in the column
  bool exact_borders = true;             // false: borders were moved to the nearest index leaf (less than half a column)
};

struct LiveRequest {
  std::string at = "peak";              // resolve() words: peak, steady, end, step:N, 6.244s, moment:123, ...
  std::vector<By> by = {By::category};  // nesting order; empty: single blocks instead of groups
  std::string where;
  int place = -1;
  std::uint32_t limit = 50;  // rows; 0 = all
};
struct Live {
  Moment at = 0;
  std::uint64_t time_us = 0;
  std::int64_t step = 0;
  std::string phase;
  Bytes total = 0, requested = 0;
  std::uint64_t count = 0;
  std::vector<Group> groups;  // largest first
  std::vector<Block> blocks;  // where `by` is empty, largest first
  Bytes rest_bytes = 0;       // what the limit left out
  std::uint64_t rest_count = 0, rest_groups = 0;
};

struct TopRequest {  // bytes allocated in a range, by group
  std::uint64_t t0_us = 0, t1_us = 0;
  By by = By::op;
  std::string where;
  int place = -1;
  std::uint32_t limit = 50;
};
struct Top {
  Bytes total = 0;
  std::uint64_t count = 0;
  std::vector<Group> groups;  // most bytes first
  Bytes rest_bytes = 0;
  std::uint64_t rest_groups = 0;
};

struct Region {
  std::uint32_t pool = 0;
  std::uint64_t address = 0;
  Bytes bytes = 0, live = 0, largest_hole = 0;
  std::uint64_t since_us = 0;
  std::uint64_t empty_since_us = 0;  // 0 = holds a block
  std::int64_t empty_since_step = 0;
};
struct Hole {
  std::uint32_t pool = 0, region = 0;  // region: index into `regions`
  std::uint64_t address = 0;
  Bytes bytes = 0;
  std::uint64_t before = kNever, after = kNever;  // ids of the neighbouring blocks, kNever = the region's edge
};
struct MapRequest {
  std::string at = "peak";
  std::int64_t pool = -1;  // -1: every pool of the place that has regions
  int place = -1;
  std::string where;  // blocks that do not match keep their place with `faded`
};
struct MapBlock {
  std::uint64_t id = 0, address = 0;
  Bytes granted = 0, requested = 0;
  std::uint32_t region = 0;   // index into `regions`
  std::uint8_t category = 0;  // index into category_names()
  bool faded = false;
  std::uint64_t birth_us = 0;
  std::uint32_t label = 0;  // index into `labels`: "layer op"
};
struct AddressMap {
  Moment at = 0;
  std::uint64_t time_us = 0;
  Bytes pool_bytes = 0, live = 0, free = 0, largest_hole = 0;
  std::vector<Region> regions;   // by pool, then in the order they were taken
  std::vector<MapBlock> blocks;  // by address
  std::vector<Hole> holes;       // by address
  std::vector<std::string> labels;
  Bytes outside = 0;  // live bytes that lie in no recorded region
};

struct DiffRequest {  // two instants of one trace
  std::string a = "0", b = "peak";
  By by = By::category;
  std::string where;
  int place = -1;
  std::uint32_t limit = 50;
};
struct DiffRow {
  std::string key;
  Bytes a = 0, b = 0;
  std::int64_t change = 0;
};
struct Diff {
  Moment a = 0, b = 0;
  Bytes total_a = 0, total_b = 0;
  Bytes came = 0, went = 0;   // blocks live only in b, only in a
  std::vector<DiffRow> rows;  // largest change first
};

struct EventsRequest {
  std::uint64_t t0_us = 0, t1_us = 0;
  std::string where;
  int place = -1;
  std::uint32_t limit = 2000;
};
struct MemoryEvent {
  Moment at = 0;  // state right after it
  std::uint64_t time_us = 0;
  bool is_free = false;
  Block block;
};

struct LedgerLine {
  std::string name;            // device used, this process, driver level, pool regions, live blocks, ...
  std::optional<Bytes> bytes;  // nullopt = not recorded
  std::vector<std::pair<std::string, Bytes>> parts;
  std::optional<std::int64_t> residual;  // bytes - sum(parts); nullopt where a side is not recorded
  std::string note;
};
struct Ledger {
  std::string sentence;
  Moment at = 0;
  std::uint64_t time_us = 0;
  std::int64_t step = 0;
  std::string place;
  Bytes card = 0;  // total of the device, 0 = unknown
  std::vector<LedgerLine> lines;
  std::vector<LedgerLine> host;  // resident set, pinned, framework host pools
  std::string advice;
};

struct LayerRow {
  std::string name;  // "" = outside any layer
  Bytes parameters = 0, gradients = 0, optimizer_state = 0, activations = 0, temporaries = 0, inputs = 0, other = 0;  // then
  Bytes total = 0;
  Bytes own_peak = 0;  // highest live of this layer alone, whenever it was
  Moment own_peak_at = 0;
  std::string line;
};
struct Layers {
  std::string sentence;
  Moment at = 0;
  std::uint64_t layers = 0;    // rows that are layers of the network, not its input, loss or optimizer
  std::vector<LayerRow> rows;  // model order: as a step makes their activations
};

struct LeakRow {
  std::string category, layer, op, line, shape;
  Bytes block_bytes = 0;                         // of one block (largest)
  double bytes_per_step = 0, low = 0, high = 0;  // 95 % interval
  std::int64_t since_step = 0;
  std::uint64_t blocks = 0;  // survivors
  Bytes so_far = 0;
  bool replaced = false;                // no block stays: each step replaces one by a larger one
  std::vector<std::uint64_t> examples;  // ids, oldest first, still live
};
struct Leaks {
  std::string verdict;  // growing, not growing, cannot tell
  std::string sentence;
  std::string why;  // where it cannot tell: why, and what would help
  double bytes_per_step = 0, low = 0, high = 0;
  double confidence = 0.95;
  std::int64_t since_step = 0;
  Bytes so_far = 0;
  std::optional<double> steps_to_full;  // headroom / rate, where a limit is known
  bool saturates = false;               // grew and stopped, or bends towards a limit
  std::vector<std::int64_t> step_number;
  std::vector<Bytes> left_after;  // live after each step looked at: the staircase
  std::vector<LeakRow> rows;
  std::string advice;
};

struct FragPoint {
  Moment at = 0;
  std::uint64_t time_us = 0;
  std::int64_t step = 0;
  Bytes pool = 0, live = 0, requested = 0, cached = 0, largest_free = 0;
  Bytes request = 0;   // largest recent request
  Bytes unusable = 0;  // cached bytes in holes smaller than it
};
struct Pin {  // a long-lived block between two holes
  Block block;
  Bytes frees = 0;          // bytes of holes around it that would become one
  Bytes largest_after = 0;  // size of that one hole
};
struct Grown {  // enough was free, nothing fitted, the pool grew
  Moment at = 0;
  std::uint64_t time_us = 0;
  std::int64_t step = 0;
  Bytes request = 0, free = 0, largest_hole = 0, grew_by = 0;
  std::uint64_t holes = 0;
  std::string op, layer;
};
struct Fragmentation {
  std::string sentence;
  std::vector<FragPoint> points;
  FragPoint worst;
  Bytes slack = 0;     // granted - requested at the worst point
  Bytes rounding = 0;  // of it: up to the allocator's quantum
  std::vector<Pin> pins;
  std::vector<Grown> grown;
  std::vector<Region> empty;  // regions that have held nothing since a step
  std::string advice;
};

struct OomCause {
  std::string cause;  // too big, fragmentation, pool limit, leak, spike, other process
  bool holds = false;
  std::string would_fit;  // yes, no, unknown: "would fit without it"
  Bytes bytes = 0;        // what it takes away
  std::string evidence;
};
struct OomEvent {
  Moment at = 0;
  std::uint64_t time_us = 0;
  std::int64_t step = 0;
  bool final = false;
  Bytes requested = 0, live = 0, regions = 0, free = 0, largest_free = 0, limit = 0;
  Bytes short_by = 0;  // how far from fitting
  std::string op, layer, line, pool;
  std::string verdict;  // the main cause's name
  std::string sentence;
  std::vector<OomCause> causes;
  std::vector<Group> live_set;  // by category, layer, op: largest first
};
struct Ooms {
  std::string sentence;
  std::vector<OomEvent> events;  // final ones
  std::uint64_t optional_refusals = 0;
  std::string advice;
};

struct Finding {
  std::string id;  // stable word: pool-took-card, empty-regions, peak-is-autotuning, leak, fragmentation, ...
  std::string title, cause, remedy;
  std::optional<Bytes> at_stake;  // nullopt = unknown
  std::string view, at, where;    // the proof: which view, instant, filter
};
struct Findings {
  std::vector<Finding> findings;  // at most five, most bytes first
  std::vector<std::string> also_checked;
};

struct Overview {
  std::string sentence;
  std::string path, program;
  std::uint64_t start_realtime_us = 0, duration_us = 0;
  std::uint64_t events = 0, allocs = 0, frees = 0, unmatched_frees = 0;
  std::string damage;  // empty = complete
  bool truncated = false;
  std::vector<std::pair<std::string, std::uint64_t>> lost;
  std::string missing;  // what the figures lack because of it, in words; empty = nothing
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<Place> places;
  int main_place = -1;
  std::string steps_source;
  std::uint64_t steps = 0;
  std::string checked;  // "Peak equals TensorFlow's counter, to the byte", or by how much it differs
  std::uint64_t ooms = 0;
};

struct Sample {
  std::uint64_t time_us = 0;
  std::int64_t device = -1;  // -1: host (used = resident set, other = pinned)
  Bytes used = 0, total = 0, process = 0, other = 0;
};
struct Mark {  // a stretch or an instant told by the program
  std::string kind, name, detail;
  std::int64_t number = 0;
  std::uint64_t begin_us = 0, end_us = 0;
  Moment begin = 0, end = 0;
};
struct Completion {
  std::string text;  // "layer:conv2d_1"
  Bytes bytes = 0;   // live at the peak
};

// --- several traces -----------------------------------------------------------------------------------------------------------

struct CompareRow {
  std::string key;
  std::vector<std::optional<Bytes>> bytes;  // one for each run; nullopt: not in that run
  std::int64_t change = 0;                  // last - first
};
struct CompareSide {
  std::string name;
  Bytes peak = 0;
  std::optional<Bytes> steady_peak, left_after;  // of a run with steady steps
  std::optional<Bytes> regions;                  // of a run whose pools were recorded
  std::uint64_t steps = 0;
  std::optional<std::uint64_t> allocs_per_step;  // of a run with steady steps
};
struct Compare {
  std::string sentence;
  std::string basis;  // "each at its own steady peak", ...
  std::vector<CompareSide> sides;
  std::vector<CompareRow> categories, layers, ops, dtypes;
  std::vector<CompareRow> same_place;      // by category, both at the first run's peak phase and step
  std::vector<std::string> same_place_at;  // the instants of that, one for each run
  std::vector<std::pair<std::string, std::vector<std::string>>> settings;  // only those that differ
};

struct Violation {
  std::uint64_t line = 0;  // of the budget file
  std::string rule, message;
  double limit = 0, value = 0;
};
struct Check {
  std::string sentence;
  std::uint64_t rules = 0;
  std::vector<Violation> violations;
  std::vector<std::string> passed;
};

}  // namespace vramscope::analyze
