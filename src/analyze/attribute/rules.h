// What a block is: an ordered list of named rules. The first one that applies decides.
//
// A rule depends only on the facts about one block, so each can be read and tested by itself. The rules for all frameworks are
// here; a framework adds its own (analyze/framework.h), each with a precedence among them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "analyze/index/store.h"

namespace vramscope::analyze {

struct BlockFacts {
  trace::Framework framework = trace::Framework::none;
  trace::Category named = trace::Category::unknown;  // according to the name of its op
  Stage stage = Stage::other;                        // when it was born: as named, otherwise by the passes of its step
  Stage named_stage = Stage::other;                  // according to names and marks alone
  bool has_layer = false;
  bool on_device = false;
  bool unread = false;          // by its graph, no op of the backward pass reads it
  bool slots_reported = false;  // the Python side reported the optimizer's slots by address
  bool kept_by_pass = false;    // born in a reported backward pass, alive after its end
  bool freed = false;
  bool stays = false;     // beyond the last step
  std::uint32_t own = 0;  // bits that only the rules of its framework use

  // For a block that was born in a step; otherwise all false.
  bool in_step = false;
  bool ends_in_step = false;      // freed before the step ended, or the recording ends in the step
  bool ends_in_training = false;  // freed before the last step ended: eager tapes wait for Python's garbage collector
  bool lives_on = false;          // born before the backward pass, alive when it starts
  bool cut_off = false;           // alive when its step was cut short
  bool kept_by_step = false;      // alive when the next step's backward pass starts
};

struct Meaning {
  trace::Category category = trace::Category::unknown;
  Known known = Known::unknown;
};

// Highest first. With the same precedence, the rules for all frameworks come before those of one.
enum class Precedence { before_name, name, after_name, lifetime, last };

struct Rule {
  std::string_view name;
  Precedence precedence;
  std::optional<Meaning> (*apply)(const BlockFacts&);
};

// The rules for all frameworks and those of this one, in order.
std::span<const Rule> attribution_rules(trace::Framework framework);

// The result of the first rule that applies; unknown if there is none.
Meaning decide(const BlockFacts& facts);

namespace rules {
std::optional<Meaning> named_by_op(const BlockFacts& facts);
std::optional<Meaning> unread_by_backward(const BlockFacts& facts);
std::optional<Meaning> cut_short(const BlockFacts& facts);
std::optional<Meaning> left_by_backward(const BlockFacts& facts);
std::optional<Meaning> handed_on(const BlockFacts& facts);
std::optional<Meaning> lifetime_in_step(const BlockFacts& facts);
std::optional<Meaning> evaluation(const BlockFacts& facts);
}  // namespace rules

}  // namespace vramscope::analyze
