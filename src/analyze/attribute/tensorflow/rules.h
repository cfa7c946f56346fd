// TensorFlow's rules of attribution, and the facts that they need.
#pragma once

#include <memory>
#include <optional>

#include "analyze/framework.h"

namespace vramscope::analyze::tensorflow {

// Bits of BlockFacts::own.
enum OwnFact : std::uint32_t {
  kUnnamed = 1,         // has no op name
  kPythonThread = 2,    // no op name, in host memory: born in a thread with marks of the Python side
  kPipelineThread = 4,  // the same, in a thread of the input pipeline
  kXlaPlanned = 8,      // the same, where the plans of XLA's executables were recorded
  kEagerOp = 16,        // a value of an op that runs outside of any graph
  kOutlivesOp = 32,     // scratch of an eager op, alive when its thread runs another op
  kImported = 64,       // not recorded by vramscope: no variables, gradients and threads are reported
  kStateByName = 128,
  kWeightGradientByName = 256,
  kActivationGradientByName = 512,  // of imported ones
};

namespace rules {
std::optional<Meaning> imported(const BlockFacts& facts);
std::optional<Meaning> kept_by_optimizer(const BlockFacts& facts);
std::optional<Meaning> replaced_by_optimizer(const BlockFacts& facts);
std::optional<Meaning> result_from_scratch(const BlockFacts& facts);
std::optional<Meaning> gradient_from_scratch(const BlockFacts& facts);
std::optional<Meaning> array_from_python(const BlockFacts& facts);
std::optional<Meaning> xla_executable(const BlockFacts& facts);
std::optional<Meaning> input_pipeline(const BlockFacts& facts);
}  // namespace rules

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& columns, const Scopes& scopes);

}  // namespace vramscope::analyze::tensorflow
