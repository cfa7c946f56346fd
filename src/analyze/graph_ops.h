// What the Python side told about the ops of TensorFlow's graphs (docs/design/python_side.md), found by the names that they have
// when they run.
#pragma once

#include <tsl/robin_map.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/scan.h"

namespace vramscope::analyze {

// An op is told under the name that it has in its own graph. Where TensorFlow puts the body of a function, a loop or a branch in
// place of the call, the caller's name stands in front: "while/body/_1/while/cond/StatefulPartitionedCall/dense/MatMul" was
// "dense/MatMul". All names that it may have been told under, the innermost graph's first.
std::vector<std::string_view> names_in_graphs(std::string_view op);

class GraphOps {
 public:
  GraphOps(const std::vector<Stamped<trace::Setting>>& settings, const trace::Dictionaries& words);

  const trace::OpSource* source(std::string_view op) const;
  // The layer; "" where the op is known to lie outside of all layers, nothing where nobody told. An op that TensorFlow itself
  // added (a transposition, a folded constant) belongs where the op or the scope stands that it was named after.
  std::optional<std::string_view> layer(std::string_view op) const;
  // Of what the op makes: the gradient of a variable, or the new block of the variable that it writes; unknown where it is
  // neither.
  trace::Category category(std::string_view op) const;
  // What a block of this op is where it is kept: the value that a variable took over.
  trace::Category value_of(std::string_view op) const;
  // The variable that either of them is about; "" where the op writes none.
  std::string_view variable(std::string_view op) const;

 private:
  struct Told {
    trace::Category category = trace::Category::unknown;
    std::string_view variable;
  };
  using Ops = tsl::robin_map<std::string_view, Told>;
  static Told find(const Ops& told, std::string_view op);
  std::string_view word(trace::StringId id) const;

  const trace::Dictionaries& words_;
  tsl::robin_map<std::string_view, const trace::OpSource*> sources_;
  tsl::robin_map<std::string_view, std::string_view> scopes_;  // name scope -> the layer whose ops stand in it
  Ops made_, values_;
};

}  // namespace vramscope::analyze
