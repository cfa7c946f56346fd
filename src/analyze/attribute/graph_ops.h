// What the Python side reported about the ops of TensorFlow's graphs (docs/design/python_side.md), looked up by the names that
// the ops have at run time.
#pragma once

#include <tsl/robin_map.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/index/scan.h"

namespace vramscope::analyze {

// An op is reported under the name that it has in its own graph. Where TensorFlow inlines the body of a function, a loop or a
// branch, the caller's name is put in front: "while/body/_1/while/cond/StatefulPartitionedCall/dense/MatMul" was "dense/MatMul".
// Returns all names that the op may have been reported under, that of the innermost graph first.
std::vector<std::string_view> names_in_graphs(std::string_view op);

class GraphOps {
 public:
  GraphOps(std::span<const trace::Report> reports, const trace::Dictionaries& dictionaries);

  const trace::OpSource* source(std::string_view op) const;
  // The layer; "" if the op is known to be outside of all layers, nothing if it was not reported. An op that TensorFlow itself
  // added (a transposition, a folded constant) belongs to the layer of the op or scope that it was named after.
  std::optional<std::string_view> layer(std::string_view op) const;
  // Of the op's result: the gradient of a variable, the new block of the variable that it writes, what the backward pass reads,
  // or an array that became a constant of the graph; unknown if it is none of these.
  trace::Category result_category(std::string_view op) const;
  // Its graph reported what the backward pass reads, and the op's result is not among that.
  bool unread(std::string_view op) const;
  // Of a block of this op that is kept: the value that a variable took over.
  trace::Category kept_category(std::string_view op) const;
  // The variable that either category is about; "" if the op writes none.
  std::string_view variable(std::string_view op) const;

 private:
  struct Reported {
    trace::Category category = trace::Category::unknown;
    std::string_view variable;
  };
  using ReportedOps = tsl::robin_map<std::string_view, Reported>;
  static Reported find(const ReportedOps& ops, std::string_view op);
  void add(const trace::BakedConstant& constant);
  void add(const trace::VariableOp& op);
  std::string_view text(trace::StringId id) const { return text_of(dictionaries_, id); }

  const trace::Dictionaries& dictionaries_;
  tsl::robin_map<std::string_view, const trace::OpSource*> sources_;
  tsl::robin_map<std::string_view, std::string_view> scopes_;  // name scope -> the layer of the ops in it
  ReportedOps results_, kept_values_;
  bool saved_ops_reported_ = false;
};

}  // namespace vramscope::analyze
