// Why steps differ although the program does the same in each: a shorter last batch, a longer sequence.
#pragma once

#include <cstdint>
#include <optional>

#include "analyze/answers.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

// The axis along which most of the bytes that changed shape did so.
struct ShapeChange {
  std::size_t axis = 0;
  std::uint64_t usual = 0, here = 0;
  bool samples = false;  // these are numbers of samples; otherwise lengths of the axis
  bool operator==(const ShapeChange&) const = default;
};

// Compares what the same ops allocate in two steps; input pipelines are not compared, because they run ahead. None if the shapes
// are the same, unknown, or differ in no common way. Where the numbers of samples are known, they decide about the first axis.
std::optional<ShapeChange> shape_change(const Store& store, const Step& usual, const Step& here);

// Sets `why` of the steady steps that differ from the usual one for such a reason, and `reason`. The steps are complete; `steps`
// has one entry for each of store.steps.
void explain_differences(const Store& store, Steps& steps);

}  // namespace vramscope::analyze
