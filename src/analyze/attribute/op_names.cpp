#include "analyze/attribute/op_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "analyze/framework.h"

namespace vramscope::analyze {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// "dense_12" -> "dense": Keras numbers repeated names.
std::string_view without_number(std::string_view part) {
  std::size_t end = part.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(part[end - 1])) != 0) --end;
  return end > 1 && end < part.size() && part[end - 1] == '_' ? part.substr(0, end - 1) : part;
}

// Scopes that TensorFlow and Keras put around the layers of a model.
bool is_wrapper(std::string_view part) {
  constexpr std::array<std::string_view, 20> kWrappers = {"StatefulPartitionedCall",
                                                          "PartitionedCall",
                                                          "gradient_tape",
                                                          "gradients",
                                                          "while",
                                                          "body",
                                                          "cond",
                                                          "then",
                                                          "else",
                                                          "sequential",
                                                          "functional",
                                                          "model",
                                                          "branch_executed",
                                                          "batch_gather",
                                                          "replica",
                                                          "cluster",
                                                          "case",
                                                          "update",
                                                          "Identity",
                                                          "loop_body"};
  std::string_view bare = without_number(part);
  // "while/body/_119/...": the branch of a loop or a condition has a number of its own.
  const bool number = part.size() > 1 && part.front() == '_' && part.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return part.empty() || number || std::ranges::find(kWrappers, bare) != kWrappers.end() || part.starts_with("__inference") ||
         part.starts_with("xla_");
}

// TensorFlow names a constant argument after its op: "Reshape/shape", "range/_0__cf__0". The op is not a layer then.
bool is_argument(std::string_view op, std::string_view part) {
  constexpr std::array<std::string_view, 16> kNames = {"shape",     "axis",     "begin", "end",      "size",  "strides",
                                                       "start",     "limit",    "delta", "perm",     "depth", "dim",
                                                       "multiples", "paddings", "stack", "split_dim"};
  constexpr std::array<std::string_view, 6> kOps = {"range", "strided_slice", "transpose", "concat", "split", "one_hot"};
  if (op.empty()) return false;
  const bool named_as_op =
      std::isupper(static_cast<unsigned char>(op.front())) != 0 || std::ranges::find(kOps, without_number(op)) != kOps.end();
  return named_as_op && (std::ranges::find(kNames, without_number(part)) != kNames.end() || has(part, "__cf__"));
}

// TensorFlow names an op without a name of its own after its type, and what belongs to the op after that:
// "gradient_tape/pow/mul", "MatMul/ReadVariableOp". Unless layers are reported, such a scope is not treated as one.
bool is_op(std::string_view part) {
  constexpr std::array<std::string_view, 30> kOps = {
      "MatMul", "BiasAdd", "Conv2D", "Const", "Mean",    "Sum",      "Less",       "Greater", "Equal",         "Cast",
      "Relu",   "Tanh",    "Pow",    "Add",   "AddV2",   "Sub",      "Mul",        "Square",  "Sqrt",          "GatherV2",
      "add",    "sub",     "mul",    "pow",   "truediv", "floordiv", "div_no_nan", "Reshape", "strided_slice", "Maximum"};
  return std::ranges::find(kOps, without_number(part)) != kOps.end() || part.starts_with("pivot_") || has(part, "Dataset") ||
         has(part, "Iterator");
}

// The passes of Grappler put the ops that they add into a scope of their own: "ArithmeticOptimizer/AddOpsRewrite_add",
// "inject/prefetch_ScanDataset" (of tf.data).
bool is_grappler(std::string_view part) {
  constexpr std::array<std::string_view, 10> kPasses = {
      "ArithmeticOptimizer",      "ConstantFolding", "DependencyOptimizer", "FunctionOptimizer",
      "LayoutOptimizer",          "LoopOptimizer",   "MemoryOptimizer",     "Remapper",
      "ScopedAllocatorOptimizer", "inject"};
  return std::ranges::find(kPasses, part) != kPasses.end();
}

bool is_optimizer(std::string_view part) {
  constexpr std::array<std::string_view, 16> kNames = {"adam",     "adamw",     "sgd",   "rmsprop",   "adagrad",
                                                       "adadelta", "adamax",    "nadam", "ftrl",      "lion",
                                                       "lamb",     "adafactor", "muon",  "optimizer", "loss_scale_optimizer",
                                                       "training"};
  std::string name = lower(without_number(part));
  return !is_grappler(part) && (std::ranges::find(kNames, name) != kNames.end() || name.ends_with("optimizer"));
}

bool is_backward_op(std::string_view type) {
  return has(type, "Backprop") || type.ends_with("Grad") || has(type, "GradV") || has(type, "Grad_") || has(type, "backward") ||
         has(type, "Backward");
}

// Whether a block of the op that has no region is a workspace. An op outside of all scopes is named by its type. Optimizers
// compute element by element, so that only ops known to need one have it there.
bool has_workspace(Stage stage, std::string_view op, std::span<const std::string_view> users) {
  const bool may_need_one = has(op, "/") && stage != Stage::optimizer;
  return !users.empty() && (may_need_one || std::ranges::any_of(users, [&](std::string_view user) { return has(op, user); }));
}

bool is_update_op(std::string_view type) {
  return type.starts_with("ResourceApply") || type.starts_with("AssignSubVariableOp") || type.starts_with("AssignAddVariableOp");
}

bool is_input_op(std::string_view type) {
  return type.starts_with("SameWorkerRecvDone") || type.starts_with("IteratorGetNext") || type.starts_with("_Recv") ||
         type.starts_with("_HostRecv") || type.starts_with("TensorSlice") || type.starts_with("BatchDataset") ||
         type.starts_with("GatherV2") || type.starts_with("Decode") || type.starts_with("ParseExample");
}

// A constant under the name of what made it: TensorFlow folds ops like tf.zeros when it builds a graph, which keeps the result.
bool is_kept_by_graph(std::string_view op, std::string_view type, std::string_view region) {
  const std::string_view bare = without_number(type);
  return region.empty() && has(op, "/") && (bare == "zeros" || bare == "ones" || bare == "Const");
}

// What the names say of a block; `folded`: a constant that TensorFlow computed when it built the graph.
trace::Category category_in(Stage stage, std::string_view op, std::string_view type, std::string_view region, bool folded,
                            const ScopeHabits& habits) {
  using trace::Category;
  if (has(op, "XlaLaunch") || has(op, "XlaRun") || has(region, "preallocated-temp")) return Category::xla_temporary;
  if (folded) return Category::constant;
  if (region == "temp") return Category::temporary;
  if (region.empty() && has_workspace(stage, op, habits.workspace_ops)) return Category::workspace;
  if (has(op, "LayoutOptimizer")) {  // what an op gets in another order of dimensions; AddN sums gradients
    const bool of_activations = stage == Stage::backward && !has(op, "Conv2DBackpropFilter-0-");
    return of_activations || type.starts_with("AddN") ? Category::activation_gradient : Category::temporary;
  }
  if (stage == Stage::input) return Category::input;
  if (type == "Const" || type.starts_with("_EagerConst")) return Category::constant;
  if (stage == Stage::backward) return Category::activation_gradient;  // those of variables are reported, op by op
  if (stage == Stage::optimizer) return region == "persist" ? Category::optimizer_state : Category::temporary;
  return Category::unknown;
}

}  // namespace

Stage stage_from(std::string_view word) {
  std::string w = lower(word);
  if (w == "forward") return Stage::forward;
  if (w == "backward" || w == "tape" || w == "gradient") return Stage::backward;
  if (w == "optimizer" || w == "optimizer_step" || w == "apply_gradients") return Stage::optimizer;
  if (w == "input" || w == "data") return Stage::input;
  if (w == "save" || w == "checkpoint") return Stage::save;
  if (w == "evaluate" || w == "evaluation" || w == "test" || w == "validation") return Stage::evaluate;
  if (w == "build" || w == "model") return Stage::build;
  if (w == "trace" || w == "tracing" || w == "retrace") return Stage::trace;
  if (w == "compile" || w == "autotune" || w == "autotuning") return Stage::compile;
  if (w == "import") return Stage::import_;
  return Stage::other;
}

OpMeaning meaning_of(std::string_view op, std::string_view region, trace::Framework id) {
  return framework(id).meaning_of(op, region);
}

OpMeaning meaning_by_scopes(std::string_view op, std::string_view region) { return meaning_by_scopes(op, region, ScopeHabits{}); }

OpMeaning meaning_by_scopes(std::string_view op, std::string_view region, const ScopeHabits& habits) {
  OpMeaning out;
  using trace::Category;
  if (op.empty()) {
    if (has(region, "xla") || has(region, "preallocated-temp")) out.category = Category::xla_temporary;
    return out;
  }
  std::vector<std::string_view> parts;
  bool optimizer = false;
  for (std::size_t at = 0; at <= op.size();) {
    std::size_t slash = std::min(op.find('/', at), op.size());
    std::string_view part = op.substr(at, slash - at);
    at = slash + 1;
    // Only the outer scopes name an optimizer: a layer may be called "update".
    if (parts.empty() && is_optimizer(part) && slash < op.size()) optimizer = true;
    if (parts.empty() && is_wrapper(part) && slash < op.size()) continue;
    parts.push_back(part);
  }
  bool folded = has(parts.back(), "__cf__");
  if (parts.size() >= 2 && is_argument(parts[parts.size() - 2], parts.back())) parts.pop_back();
  std::string_view type = parts.back();
  folded |= is_kept_by_graph(op, type, region);
  if (optimizer || is_update_op(type))
    out.stage = Stage::optimizer;
  else if (has(op, "gradient_tape/") || has(op, "gradients/") || is_backward_op(type))
    out.stage = Stage::backward;
  else if (is_input_op(type) && parts.size() == 1)
    out.stage = Stage::input;
  else if (habits.scopes_run_forward && parts.size() >= 2)
    out.stage = Stage::forward;
  // Constants that Grappler folds are in a scope of their own, which contains the op's old name. Scopes that start with an
  // underscore are TensorFlow's own; a program cannot name one.
  const bool own_scope = is_grappler(parts.front()) || parts.front().starts_with('_');
  if (parts.size() >= 2 && !optimizer && out.stage != Stage::input && !own_scope && !is_op(parts.front()))
    out.layer = parts.front() == "compile_loss" ? kLossGroup : parts.front();

  out.category = category_in(out.stage, op, type, region, folded, habits);
  return out;
}

}  // namespace vramscope::analyze
