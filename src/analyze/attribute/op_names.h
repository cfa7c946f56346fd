// What the name of an op reveals: its layer, the stage of a training step, the category of its result.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// Groups for blocks outside of all layers, by purpose. The Python side uses the same names.
inline constexpr std::string_view kOptimizerGroup = "(optimizer)", kLossGroup = "(loss and metrics)", kInputGroup = "(input)";

struct OpMeaning {
  std::string layer;  // "" = the name contains none
  Stage stage = Stage::other;
  trace::Category category = trace::Category::unknown;  // unknown: the lifetime decides
};

// `region` is the framework's word for the kind of allocation (output, temp, persist, dynamic, or empty).
OpMeaning meaning_of(std::string_view op, std::string_view region, trace::Framework framework);

// For a framework whose ops are named by scopes, "model/dense/MatMul", as TensorFlow and XLA name them.
struct ScopeHabits {
  bool scopes_run_forward = false;  // an op inside a scope belongs to the forward pass unless its name shows otherwise
  // Parts of names: what these ops, and all ops inside a scope, allocate without a region is a workspace. Empty: nothing is.
  std::span<const std::string_view> workspace_ops = {};
};
OpMeaning meaning_by_scopes(std::string_view op, std::string_view region, const ScopeHabits& habits);
OpMeaning meaning_by_scopes(std::string_view op, std::string_view region);

// The stage that the name of a mark stands for; other if it stands for none.
Stage stage_from(std::string_view word);

}  // namespace vramscope::analyze
