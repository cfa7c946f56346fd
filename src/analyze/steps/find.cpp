// Steps without marks. A training step runs each op of the graph once (in eager mode: each op on each shape a fixed number of
// times). So the number of steps is the count that most backward ops share, and a step is the interval that contains each of
// them once.
#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "analyze/attribute/op_names.h"
#include "analyze/steps/marks.h"
#include "analyze/steps/usual.h"

namespace vramscope::analyze {
namespace {

struct Token {
  std::uint64_t count = 0;
  Stage stage = Stage::other;
  std::uint32_t depth = 0;  // number of enclosing while loops
  bool scoped = false;      // a graph op with a path
};

struct Use {
  std::uint64_t pos;
  std::uint32_t token;
};

std::uint32_t loop_depth(std::string_view op) {
  std::uint32_t depth = 0;
  for (std::size_t at = op.find("while/"); at != std::string_view::npos; at = op.find("while/", at + 6)) ++depth;
  for (std::size_t at = op.find("/body"); at != std::string_view::npos; at = op.find("/body", at + 5))
    depth += op.find("while/") == std::string_view::npos;
  return depth;
}

std::vector<std::uint64_t> count_kinds(const Tables& tables, const Columns& columns) {
  std::vector<std::uint64_t> out(tables.kinds.size(), 0);
  for (std::size_t i = 0; i < columns.kind.size(); ++i)
    if (columns.birth[i] != kNone32 && columns.kind[i] < out.size()) ++out[columns.kind[i]];
  return out;
}

// One interpretation of the trace: its tokens, and which kind is which token.
struct Reading {
  std::vector<Token> tokens;
  std::vector<std::uint32_t> of_kind;  // kNone32: not considered
};

Reading read_tokens(const Tables& tables, const Columns& columns, const trace::Dictionaries& dictionaries,
                    const std::vector<std::uint8_t>& main_pools, bool with_size) {
  Reading out;
  out.of_kind.assign(tables.kinds.size(), kNone32);
  std::vector<std::uint64_t> counts = count_kinds(tables, columns);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> ids;
  for (std::size_t k = 0; k < tables.kinds.size(); ++k) {
    const Kind& kind = tables.kinds[k];
    if (kind.pool >= main_pools.size() || main_pools[kind.pool] == 0 || counts[k] == 0) continue;
    const trace::Site& site = dictionaries.sites[kind.site];
    const std::string_view op = text_of(dictionaries, site.op), region = text_of(dictionaries, site.region);
    // Workspace is requested as often as an algorithm is tried; outputs are requested once per run.
    if (op.empty() || (region != "output" && !region.empty() && region != "dynamic") || (region.empty() && site.dtype == 0))
      continue;
    auto [it, fresh] = ids.try_emplace({static_cast<std::uint64_t>(site.op), with_size ? kind.requested + 1 : 0},
                                       static_cast<std::uint32_t>(out.tokens.size()));
    if (fresh) {
      Token token;
      token.stage = static_cast<Stage>(kind.stage);
      token.scoped = op.find('/') != std::string_view::npos;
      token.depth = loop_depth(op);
      out.tokens.push_back(token);
    }
    out.tokens[it->second].count += counts[k];
    out.of_kind[k] = it->second;
  }
  return out;
}

bool trains(const Token& t) { return t.stage == Stage::backward || t.stage == Stage::optimizer; }

// Whether anything shows that the program trains: otherwise, what repeats are runs of a model.
bool any_training(const Tables& tables) {
  return std::ranges::any_of(tables.kinds, [](const Kind& kind) {
    auto stage = static_cast<Stage>(kind.stage);
    return stage == Stage::backward || stage == Stage::optimizer;
  });
}

// The tokens that should occur once per step, and the resulting number of steps. Empty with a reason if there are two
// interpretations.
struct Choice {
  std::uint64_t steps = 0;
  std::uint32_t depth = ~0u;         // most loops around them
  std::vector<std::uint8_t> chosen;  // by token
  std::string why;
};

// How deep in loops a training step is: as deep as the shallowest backward ops, unless those are only a few. When a graph is
// optimized, its constants are computed outside its loops; that happens a few times and is not a step.
std::uint32_t step_depth(const std::vector<Token>& tokens) {
  std::map<std::uint32_t, std::uint64_t> at_depth;
  std::uint64_t all = 0;
  for (const Token& t : tokens)
    if (t.scoped && trains(t) && t.count >= 3) {
      ++at_depth[t.depth];
      ++all;
    }
  for (auto [depth, n] : at_depth)
    if (n * 10 >= all) return depth;
  return 0;
}

// The number of tokens by how often they repeat.
using Repetitions = std::map<std::uint64_t, std::uint64_t>;

// What most tokens share; the lowest of several.
std::uint64_t most_common(const Repetitions& repetitions) {
  std::uint64_t best = 0, most = 0;
  for (auto [count, tokens] : repetitions)
    if (tokens > most) {
      best = count;
      most = tokens;
    }
  return best;
}

// A count of which `steps` is two to four times may mean as many passes of one step, or that many steps. 0 if there is none.
std::uint64_t ambiguous_count(const Repetitions& repetitions, std::uint64_t steps) {
  for (auto [count, tokens] : repetitions)
    if (count < steps && steps % count == 0 && steps / count <= 4 && tokens * 20 >= repetitions.at(steps) && tokens >= 2)
      return count;
  return 0;
}

// In a graph, each op has its own name. If many run clearly more or less often than others, the program has two kinds of steps
// (gradients are summed over several, two models take turns), and the trace does not show which of them is meant. Returns how
// often most of these other ops run, or 0.
std::uint64_t other_count(const Repetitions& repetitions, std::uint64_t steps) {
  Repetitions others;
  std::uint64_t tokens_of_others = 0;
  for (auto [count, tokens] : repetitions) {
    const bool alike = count * 10 + 10 >= steps * 9 && count * 10 <= steps * 11 + 10, rare = count * 8 < steps;
    if (alike || rare) continue;
    others[count] = tokens;
    tokens_of_others += tokens;
  }
  return tokens_of_others >= 2 && tokens_of_others * 5 >= repetitions.at(steps) ? most_common(others) : 0;
}

// Why `steps`, the most common count, cannot be the number of steps; empty if it can.
std::string why_not(const Repetitions& repetitions, std::uint64_t steps, bool graph) {
  std::uint64_t all_tokens = 0;
  for (auto [count, tokens] : repetitions) all_tokens += tokens;
  if (all_tokens == 0) return "no op repeats at least three times";
  if (const std::uint64_t tokens = repetitions.at(steps); tokens < 3 || tokens * 3 < all_tokens)
    return "different ops repeat different numbers of times";
  if (const std::uint64_t count = ambiguous_count(repetitions, steps); count != 0)
    return fmt::format("the ops repeat {} times, but some of them {} times: a step may run them more than once", steps, count);
  if (const std::uint64_t count = graph ? other_count(repetitions, steps) : 0; count != 0)
    return fmt::format("some training ops repeat {} times, others {} times", steps, count);
  return {};
}

Choice choose(const std::vector<Token>& tokens) {
  const bool graph = std::ranges::any_of(tokens, [](const Token& t) { return t.scoped && trains(t) && t.count >= 3; });
  const std::uint32_t depth = graph ? step_depth(tokens) : ~0u;
  const auto is_candidate = [&](const Token& t) {
    return t.count >= 3 && (!graph || (t.scoped && trains(t) && t.depth == depth));
  };
  Repetitions repetitions;
  for (const Token& token : tokens)
    if (is_candidate(token)) ++repetitions[token.count];
  const std::uint64_t steps = most_common(repetitions);
  Choice out;
  out.why = why_not(repetitions, steps, graph);
  if (!out.why.empty()) return out;
  out.steps = steps;
  out.depth = depth;
  // Not those that repeat once more: that may be the start of a step that was cut off by the end of the recording, or something
  // that the program did once before the first step.
  for (const Token& token : tokens) out.chosen.push_back(is_candidate(token) && token.count == steps ? 1 : 0);
  return out;
}

// Positions of chosen tokens in order.
std::vector<Use> uses_of(const Reading& reading, const std::vector<std::uint8_t>& chosen, const Columns& columns) {
  std::vector<Use> out;
  for (std::size_t i = 0; i < columns.kind.size(); ++i) {
    if (columns.birth[i] == kNone32 || columns.kind[i] >= reading.of_kind.size()) continue;
    std::uint32_t token = reading.of_kind[columns.kind[i]];
    if (token != kNone32 && chosen[token] != 0) out.push_back({columns.birth[i], token});
  }
  return out;
}

// Cuts the uses into intervals in which no token occurs twice: greedily, a repeated token starts the next one. Steps are found
// if each interval is complete.
struct Cut {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stretch;  // first and last position
  bool complete = false;
};

Cut cut(const std::vector<Use>& uses, const std::vector<std::uint8_t>& chosen, std::uint64_t steps) {
  Cut out;
  std::vector<std::uint64_t> seen_in(chosen.size(), 0);
  auto wanted = static_cast<std::uint64_t>(std::accumulate(chosen.begin(), chosen.end(), std::uint64_t{0}));
  std::uint64_t in_step = 0, step = 1;
  bool whole = true;
  for (const Use& use : uses) {
    if (seen_in[use.token] == step) {
      whole = whole && in_step == wanted;
      ++step;
      in_step = 0;
    }
    if (in_step == 0) out.stretch.push_back({use.pos, use.pos});
    seen_in[use.token] = step;
    out.stretch.back().second = use.pos;
    ++in_step;
  }
  out.complete = whole && in_step == wanted && out.stretch.size() == steps;
  return out;
}

// Whether the uses of some ops are spread evenly over the steps. If one step contains far more of them than usual, or many are
// outside all steps, these are not the steps of the program.
bool is_even(const std::vector<Use>& uses, const Cut& steps, std::uint64_t times) {
  if (uses.empty()) return true;
  constexpr std::uint64_t kFew = 8;
  std::vector<std::uint64_t> in_step(steps.stretch.size(), 0);
  std::uint64_t outside = 0;
  std::size_t step = 0;
  for (const Use& use : uses) {
    while (step + 1 < in_step.size() && use.pos >= steps.stretch[step + 1].first) ++step;
    bool beyond = use.pos < steps.stretch.front().first || use.pos > steps.stretch.back().second;
    (beyond ? outside : in_step[step]) += 1;
  }
  const std::uint64_t largest = std::ranges::max(in_step), usual = *median(std::move(in_step));
  return largest <= times * usual + kFew && outside <= std::max(uses.size() / 4, usual + kFew);
}

// All training ops, not only those that define the steps, must be spread over the steps. Loops inside a step may run longer in
// one than in another.
bool is_even(const Reading& reading, const Choice& choice, const Columns& columns, const Cut& steps) {
  std::vector<std::uint8_t> all(reading.tokens.size(), 0), outer(reading.tokens.size(), 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = trains(reading.tokens[i]);
    outer[i] = all[i] != 0 && reading.tokens[i].depth <= choice.depth;
  }
  return is_even(uses_of(reading, outer, columns), steps, 2) && is_even(uses_of(reading, all, columns), steps, 8);
}

// If the functions only compute gradients, the optimizer runs op by op outside them, and perhaps not after each of them. Then
// some steps contain more of the ops without a path than others.
bool updates_each(const Reading& reading, const Choice& choice, const Columns& columns, const Cut& steps) {
  std::vector<std::uint8_t> outside(reading.tokens.size(), 0);
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (choice.chosen[i] != 0 && reading.tokens[i].stage == Stage::optimizer) return true;
    outside[i] = !reading.tokens[i].scoped;
  }
  // The first step creates what the optimizer keeps, and where the last one ends is unknown.
  if (choice.depth == ~0u || steps.stretch.size() < 4) return true;
  std::vector<std::uint64_t> in_step(steps.stretch.size(), 0);
  std::size_t step = 0;
  for (const Use& use : uses_of(reading, outside, columns)) {
    while (step + 1 < in_step.size() && use.pos >= steps.stretch[step + 1].first) ++step;
    ++in_step[step];
  }
  std::vector<std::uint64_t> inner(in_step.begin() + 1, in_step.end() - 1);
  std::ranges::sort(inner);
  constexpr std::uint64_t kFew = 4;  // a metric that is read occasionally
  const std::size_t twentieth = inner.size() / 20;
  const std::uint64_t usual = inner[twentieth] * 3 / 2 + kFew, most = inner[inner.size() - 1 - twentieth];
  return most <= usual;
}

// The moment of lowest live memory in [from, to]: between two steps, only persistent memory is live.
std::uint64_t lowest(const Tables& tables, const Columns& columns, const std::vector<std::uint8_t>& main_pools,
                     std::uint64_t from, std::uint64_t to) {
  std::int64_t live = 0, low = 0;
  std::uint64_t at = from;
  for (std::uint64_t pos = from; pos < to; ++pos) {
    std::uint32_t ref = columns.ref[pos];
    if (ref == kNone32 || columns.kind[ref >> 1] >= tables.kinds.size()) continue;
    const Kind& kind = tables.kinds[columns.kind[ref >> 1]];
    if (kind.pool >= main_pools.size() || main_pools[kind.pool] == 0) continue;
    live += (ref & 1) != 0 ? -static_cast<std::int64_t>(kind.granted) : static_cast<std::int64_t>(kind.granted);
    if (live < low) {
      low = live;
      at = pos + 1;
    }
  }
  return at;
}

// Where the steps end: each at the lowest moment before the next one. After the last step, the program may evaluate, save and
// free everything at exit, which does not belong to that step, so it ends as soon after its last op as the others usually do.
std::vector<std::uint64_t> step_ends(const Tables& tables, const Columns& columns, const std::vector<std::uint8_t>& main_pools,
                                     const Cut& steps) {
  std::vector<std::uint64_t> out, tails;
  for (std::size_t i = 0; i + 1 < steps.stretch.size(); ++i) {
    std::uint64_t last_op = steps.stretch[i].second + 1;
    out.push_back(lowest(tables, columns, main_pools, last_op, steps.stretch[i + 1].first));
    tails.push_back(out.back() - last_op);
  }
  const std::uint64_t tail = median(std::move(tails)).value_or(0);
  std::uint64_t last_op = steps.stretch.back().second + 1;
  out.push_back(lowest(tables, columns, main_pools, last_op, std::min<std::uint64_t>(last_op + tail, columns.ref.size())));
  return out;
}

// Where the first step starts: at the first op, of the forward pass too, that repeats as often as there are steps.
std::uint64_t first_begin(const Reading& reading, const Choice& choice, const Columns& columns, const Cut& steps) {
  std::vector<std::uint8_t> once_per_step;
  for (const Token& token : reading.tokens) once_per_step.push_back(token.count == choice.steps ? 1 : 0);
  const std::vector<Use> uses = uses_of(reading, once_per_step, columns);
  const std::uint64_t first = steps.stretch.front().first;
  return uses.empty() ? first : std::min(first, uses.front().pos);
}

// Why what repeats does not make up the steps; empty if it does.
std::string why_no_steps(const Reading& reading, const Choice& choice, const Columns& columns, const Cut& steps) {
  if (!steps.complete) return fmt::format("{} repetitions were seen, but they do not fall into equal steps", choice.steps);
  if (!is_even(reading, choice, columns, steps))
    return fmt::format("{} repetitions were seen, but most of the training lies in a few of them or outside", choice.steps);
  if (!updates_each(reading, choice, columns, steps))
    return fmt::format("gradients were computed {} times, but what follows differs: a step may compute them more than once",
                       choice.steps);
  return {};
}

std::vector<StepRow> rows_of(std::uint64_t begin, const std::vector<std::uint64_t>& ends, std::uint32_t kind) {
  std::vector<StepRow> out;
  for (const std::uint64_t end : ends) {
    StepRow row;
    row.number = static_cast<std::int64_t>(out.size()) + 1;
    row.kind = kind;
    row.begin = std::exchange(begin, end);
    row.end = end;
    out.push_back(row);
  }
  return out;
}

}  // namespace

StepsFound inferred_steps(const Tables& tables, const Columns& columns, const trace::Dictionaries& dictionaries,
                          const std::vector<std::uint8_t>& main_pools, NameTable& names) {
  StepsFound out;
  // By size first (eager ops have no path); if sizes vary from step to step, by op alone.
  for (const bool with_size : {true, false}) {
    const Reading reading = read_tokens(tables, columns, dictionaries, main_pools, with_size);
    const Choice choice = choose(reading.tokens);
    out.why = choice.why;
    if (choice.steps == 0) continue;
    const Cut steps = cut(uses_of(reading, choice.chosen, columns), choice.chosen, choice.steps);
    out.why = why_no_steps(reading, choice, columns, steps);
    if (!out.why.empty()) continue;
    out.source = StepSource::inferred;
    out.steps = rows_of(first_begin(reading, choice, columns, steps), step_ends(tables, columns, main_pools, steps),
                        names.id(any_training(tables) ? "train" : "run"));
    return out;
  }
  return out;
}

}  // namespace vramscope::analyze
