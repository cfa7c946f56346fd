// Steps without marks. A training step runs each op of the graph once (eagerly: each op on each shape a fixed number of times).
// So the number of steps is the count that most backward ops share, and a step is the stretch that holds each of them once.
#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "analyze/op_names.h"
#include "analyze/step_marks.h"

namespace vramscope::analyze {
namespace {

struct Token {
  std::uint64_t count = 0, bytes = 0;
  Stage stage = Stage::other;
  std::uint32_t depth = 0;  // of while loops around it
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

// One reading of the trace: which tokens there are, and which kind is which token.
struct Reading {
  std::vector<Token> tokens;
  std::vector<std::uint32_t> of_kind;  // kNone32: not looked at
};

Reading read_tokens(const Tables& tables, const Columns& columns, const trace::Dictionaries& words,
                    const std::vector<std::uint8_t>& main_pools, bool with_size) {
  Reading out;
  out.of_kind.assign(tables.kinds.size(), kNone32);
  std::vector<std::uint64_t> counts = count_kinds(tables, columns);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> ids;
  auto word = [&](trace::StringId id) -> std::string_view {
    auto i = static_cast<std::size_t>(id);
    return i < words.strings.size() ? std::string_view(words.strings[i]) : std::string_view();
  };
  for (std::size_t k = 0; k < tables.kinds.size(); ++k) {
    const Kind& kind = tables.kinds[k];
    if (kind.pool >= main_pools.size() || main_pools[kind.pool] == 0 || counts[k] == 0) continue;
    const trace::Site& site = words.sites[kind.site];
    std::string_view op = word(site.op), region = word(site.region);
    // Scratch is asked for as often as an algorithm is tried; outputs are asked for once a run.
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
    out.tokens[it->second].bytes += counts[k] * kind.granted;
    out.of_kind[k] = it->second;
  }
  return out;
}

bool trains(const Token& t) { return t.stage == Stage::backward || t.stage == Stage::optimizer; }

// Whether anything shows that the program trains: else what repeats are runs of a model.
bool any_training(const Tables& tables) {
  return std::ranges::any_of(tables.kinds, [](const Kind& kind) {
    auto stage = static_cast<Stage>(kind.stage);
    return stage == Stage::backward || stage == Stage::optimizer;
  });
}

// The tokens that shall occur once a step, and how many steps that makes. Empty with a reason where there are two readings.
struct Choice {
  std::uint64_t steps = 0;
  std::uint32_t depth = ~0u;         // of the loops around them at most
  std::vector<std::uint8_t> chosen;  // by token
  std::string why;
};

// How deep in loops a training step lies: as deep as the shallowest backward ops, unless those are only a few: the constants of a
// graph are computed outside its loops when it is optimized, which happens a few times and is no step.
std::uint32_t step_depth(const std::vector<Token>& tokens) {
  std::map<std::uint32_t, std::uint64_t> at_depth;
  std::uint64_t all = 0;
  for (const Token& t : tokens)
    if (t.scoped && trains(t) && t.count >= 3) ++at_depth[t.depth], ++all;
  for (auto [depth, n] : at_depth)
    if (n * 10 >= all) return depth;
  return 0;
}

Choice choose(const std::vector<Token>& tokens) {
  Choice out;
  std::vector<std::uint8_t> candidate(tokens.size(), 0);
  bool graph = std::ranges::any_of(tokens, [](const Token& t) { return t.scoped && trains(t) && t.count >= 3; });
  std::uint32_t depth = graph ? step_depth(tokens) : ~0u;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    candidate[i] = t.count >= 3 && (!graph || (t.scoped && trains(t) && t.depth == depth));
  }
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> by_count;  // count -> tokens, bytes
  std::uint64_t all_tokens = 0, all_bytes = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (candidate[i] == 0) continue;
    auto& [n, bytes] = by_count[tokens[i].count];
    n += 1;
    bytes += tokens[i].bytes;
    all_tokens += 1;
    all_bytes += tokens[i].bytes;
  }
  std::uint64_t best = 0, best_tokens = 0;
  for (auto [count, sum] : by_count)
    if (sum.first > best_tokens) std::tie(best, best_tokens) = std::pair(count, sum.first);
  if (best_tokens < 3 || best_tokens * 3 < all_tokens) {
    out.why = all_tokens == 0 ? "no op repeats at least three times" : "the ops do not share one number of repetitions";
    return out;
  }
  // Twice or three times as often may be two or three passes of one step as well as so many steps.
  for (auto [count, sum] : by_count) {
    if (count < best && best % count == 0 && best / count <= 4 && sum.first * 20 >= best_tokens && sum.first >= 2) {
      out.why =
          fmt::format("the ops repeat {} times, but some of them {} times: a step may run them more than once", best, count);
      return out;
    }
  }
  // In a graph each op has a name of its own. Where some run much more or less often than the others, the program has two kinds
  // of steps (gradients are summed over several, two models take turns), and which of them is meant is not in the trace.
  std::uint64_t other_tokens = 0, other_count = 0, most = 0;
  for (auto [count, sum] : by_count) {
    bool alike = count * 10 + 10 >= best * 9 && count * 10 <= best * 11 + 10, rare = count * 8 < best;
    if (alike || rare) continue;
    other_tokens += sum.first;
    if (sum.first > most) most = sum.first, other_count = count;
  }
  if (graph && other_tokens >= 2 && other_tokens * 5 >= best_tokens) {
    out.why = fmt::format("some ops of the training repeat {} times, others {} times", best, other_count);
    return out;
  }
  out.steps = best;
  out.depth = depth;
  out.chosen.assign(tokens.size(), 0);
  // Not those that repeat once more: that may be the beginning of a step that the end of the recording cut short, or something
  // that the program did once before the first.
  for (std::size_t i = 0; i < tokens.size(); ++i) out.chosen[i] = candidate[i] != 0 && tokens[i].count == best;
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

// Cuts the uses into stretches in which no token occurs twice: greedy, a repeated token opens the next one. Steps are found
// when each stretch is complete.
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

// How the uses of some ops lie in the steps. Where one step holds far more of them than usual, or many lie outside of all steps,
// what was found is not what repeats.
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
  std::uint64_t largest = std::ranges::max(in_step);
  auto middle = in_step.begin() + static_cast<std::ptrdiff_t>(in_step.size() / 2);
  std::ranges::nth_element(in_step, middle);
  return largest <= times * *middle + kFew && outside <= std::max(uses.size() / 4, *middle + kFew);
}

// All ops of the training, not only those that steps were made of, must be spread over the steps. Loops inside a step may run
// longer in one than in another.
bool is_even(const Reading& reading, const Choice& choice, const Columns& columns, const Cut& steps) {
  std::vector<std::uint8_t> all(reading.tokens.size(), 0), outer(reading.tokens.size(), 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = trains(reading.tokens[i]);
    outer[i] = all[i] != 0 && reading.tokens[i].depth <= choice.depth;
  }
  return is_even(uses_of(reading, outer, columns), steps, 2) && is_even(uses_of(reading, all, columns), steps, 8);
}

// Where the functions only take gradients, the optimizer runs op by op outside of them, and perhaps not after each of them. Then
// some steps hold more of the ops without a path than others.
bool updates_each(const Reading& reading, const Choice& choice, const Columns& columns, const Cut& steps) {
  std::vector<std::uint8_t> outside(reading.tokens.size(), 0);
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (choice.chosen[i] != 0 && reading.tokens[i].stage == Stage::optimizer) return true;
    outside[i] = !reading.tokens[i].scoped;
  }
  // The first step makes what the optimizer keeps, and where the last one ends is not known.
  if (choice.depth == ~0u || steps.stretch.size() < 4) return true;
  std::vector<std::uint64_t> in_step(steps.stretch.size(), 0);
  std::size_t step = 0;
  for (const Use& use : uses_of(reading, outside, columns)) {
    while (step + 1 < in_step.size() && use.pos >= steps.stretch[step + 1].first) ++step;
    ++in_step[step];
  }
  std::vector<std::uint64_t> inner(in_step.begin() + 1, in_step.end() - 1);
  std::ranges::sort(inner);
  constexpr std::uint64_t kFew = 4;  // a metric that is read now and then
  const std::size_t twentieth = inner.size() / 20;
  const std::uint64_t usual = inner[twentieth] * 3 / 2 + kFew, most = inner[inner.size() - 1 - twentieth];
  return most <= usual;
}

// The moment of lowest live memory in [from, to]: between two steps only what stays is live.
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

// Where the steps begin and end. Between two of them, at the lowest moment. After the last one the program may evaluate, save and
// free everything at exit: that is no part of it, so it ends as soon after its last op as the others usually do.
std::vector<std::uint64_t> step_ends(const Tables& tables, const Columns& columns, const std::vector<std::uint8_t>& main_pools,
                                     const Cut& steps) {
  std::vector<std::uint64_t> out, tails;
  for (std::size_t i = 0; i + 1 < steps.stretch.size(); ++i) {
    std::uint64_t last_op = steps.stretch[i].second + 1;
    out.push_back(lowest(tables, columns, main_pools, last_op, steps.stretch[i + 1].first));
    tails.push_back(out.back() - last_op);
  }
  std::uint64_t tail = 0;
  if (!tails.empty()) {
    auto middle = tails.begin() + static_cast<std::ptrdiff_t>(tails.size() / 2);
    std::ranges::nth_element(tails, middle);
    tail = *middle;
  }
  std::uint64_t last_op = steps.stretch.back().second + 1;
  out.push_back(lowest(tables, columns, main_pools, last_op, std::min<std::uint64_t>(last_op + tail, columns.ref.size())));
  return out;
}

}  // namespace

StepsFound found_steps(const Tables& tables, const Columns& columns, const trace::Dictionaries& words,
                       const std::vector<std::uint8_t>& main_pools, NameTable& names) {
  StepsFound out;
  // By size first (eager ops have no path); where sizes vary from step to step, by op alone.
  for (bool with_size : {true, false}) {
    Reading reading = read_tokens(tables, columns, words, main_pools, with_size);
    Choice choice = choose(reading.tokens);
    if (choice.steps == 0) {
      out.why = choice.why;
      continue;
    }
    std::vector<Use> uses = uses_of(reading, choice.chosen, columns);
    Cut steps = cut(uses, choice.chosen, choice.steps);
    if (!steps.complete) {
      out.why = fmt::format("{} repetitions were seen, but they do not fall into equal steps", choice.steps);
      continue;
    }
    if (!is_even(reading, choice, columns, steps)) {
      out.why = fmt::format("{} repetitions were seen, but most of the training lies in a few of them or outside", choice.steps);
      continue;
    }
    if (!updates_each(reading, choice, columns, steps)) {
      out.why = fmt::format("gradients were taken {} times, but what follows differs: a step may take them more than once",
                            choice.steps);
      continue;
    }
    // Ops of the forward pass that repeat with the same count show where the first step begins.
    std::uint64_t first = steps.stretch.front().first;
    std::vector<std::uint8_t> same(reading.tokens.size(), 0);
    for (std::size_t i = 0; i < same.size(); ++i) same[i] = reading.tokens[i].count == choice.steps;
    for (const Use& use : uses_of(reading, same, columns)) {
      first = std::min(first, use.pos);
      break;
    }
    std::uint32_t kind = names.id(any_training(tables) ? "train" : "run");
    std::uint64_t begin = first;
    std::vector<std::uint64_t> ends = step_ends(tables, columns, main_pools, steps);
    for (std::size_t i = 0; i < steps.stretch.size(); ++i) {
      StepRow row;
      row.number = static_cast<std::int64_t>(i) + 1;
      row.kind = kind;
      row.begin = begin;
      row.end = ends[i];
      begin = row.end;
      out.steps.push_back(row);
    }
    out.source = 2;
    out.why.clear();
    return out;
  }
  return out;
}

}  // namespace vramscope::analyze
