#include "analyze/attribute/rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "analyze/framework.h"

namespace vramscope::analyze {

using trace::Category;

namespace rules {

std::optional<Meaning> named_by_op(const BlockFacts& facts) {
  if (facts.named == Category::unknown) return std::nullopt;
  return Meaning{facts.named, Known::named};
}

// The executor may free it only after the backward pass has begun. That does not make it an activation.
std::optional<Meaning> unread_by_backward(const BlockFacts& facts) {
  if (!facts.unread || facts.stage != Stage::forward || !facts.ends_in_training || facts.cut_off) return std::nullopt;
  return Meaning{Category::temporary, Known::inferred};
}

// Blocks of a layer in the forward pass of a step that was cut short would have lived on for the backward pass.
std::optional<Meaning> cut_short(const BlockFacts& facts) {
  if (!facts.cut_off || facts.lives_on) return std::nullopt;
  if (facts.stage != Stage::forward || !facts.has_layer) return std::nullopt;
  return Meaning{Category::activation, Known::inferred};
}

// Only the gradients of the parameters outlive a backward pass.
std::optional<Meaning> left_by_backward(const BlockFacts& facts) {
  if (facts.stage != Stage::backward || !facts.kept_by_pass || facts.cut_off) return std::nullopt;
  return Meaning{Category::gradient, Known::inferred};
}

// The ops of a backward pass hand everything else to one another.
std::optional<Meaning> handed_on(const BlockFacts& facts) {
  if (facts.named_stage != Stage::backward) return std::nullopt;
  return Meaning{Category::activation_gradient, Known::inferred};
}

// Not if the step was cut short: the lifetime ended with the program then, and shows nothing.
std::optional<Meaning> lifetime_in_step(const BlockFacts& facts) {
  if (!facts.ends_in_training || (facts.cut_off && !facts.lives_on)) return std::nullopt;
  return Meaning{facts.lives_on ? Category::activation : Category::temporary, Known::inferred};
}

// An evaluation between the steps keeps nothing for them.
std::optional<Meaning> evaluation(const BlockFacts& facts) {
  if (facts.in_step || facts.stage != Stage::evaluate || !facts.freed) return std::nullopt;
  return Meaning{Category::temporary, Known::inferred};
}

}  // namespace rules

namespace {

constexpr Rule kForAll[] = {
    {"name of the op", Precedence::name, rules::named_by_op},
    {"left by a backward pass", Precedence::after_name, rules::left_by_backward},
    {"handed on in a backward pass", Precedence::after_name, rules::handed_on},
    {"not read by any backward op", Precedence::lifetime, rules::unread_by_backward},
    {"step that was cut short", Precedence::lifetime, rules::cut_short},
    {"lifetime in its step", Precedence::lifetime, rules::lifetime_in_step},
    {"evaluation", Precedence::lifetime, rules::evaluation},
};

using RuleList = std::vector<Rule>;

RuleList with_rules_of(const Framework& framework) {
  RuleList out(std::begin(kForAll), std::end(kForAll));
  out.insert(out.end(), framework.rules.begin(), framework.rules.end());
  std::ranges::stable_sort(out, {}, &Rule::precedence);
  return out;
}

}  // namespace

std::span<const Rule> attribution_rules(trace::Framework id) {
  static const auto kLists = [] {
    std::map<trace::Framework, RuleList> lists;
    for (const Framework* framework : frameworks()) lists[framework->id] = with_rules_of(*framework);
    return lists;
  }();
  const auto found = kLists.find(id);
  return found != kLists.end() ? std::span<const Rule>(found->second) : std::span<const Rule>(kForAll);
}

Meaning decide(const BlockFacts& facts) {
  for (const Rule& rule : attribution_rules(facts.framework))
    if (auto meaning = rule.apply(facts)) return *meaning;
  return {};
}

}  // namespace vramscope::analyze
