// One pass over what is live at a moment, summed up by what the findings ask for.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "analyze/attribute/categories.h"
#include "analyze/index/store.h"
#include "analyze/query/grouper.h"
#include "analyze/verdict/float64_blocks.h"

namespace vramscope::analyze {

// Whether the blocks of a kind are copies of tensors in another layout, which the framework has added to the program.
bool is_layout_copy(const Store& store, const Kind& kind);

struct LiveSums {
  std::array<Bytes, kShown> category = {};
  Bytes trained = 0;  // parameters without buffers
  // As requested: a count of values must not depend on what the allocator adds.
  Bytes values_trained = 0, values_kept = 0;  // of parameters; of the optimizer's state
  Bytes kept_by_any = 0;                      // the rest of that state, which any optimizer would keep
  Bytes of_known_type = 0;
  Bytes float64 = 0;
  Bytes layout_copies = 0;
  std::string_view layout_copy_ops;  // in the names of the ops that made them (Framework::layout_copies)
  Bytes kept_inputs = 0;             // input data and constants that were there before the steps
  std::string input_line;

  Bytes of(Shown shown) const { return category[static_cast<std::size_t>(shown)]; }
};

// Whether a block of an optimizer's state would be there with any optimizer: gradients summed up over several steps, averaged
// weights.
bool is_kept_by_any_optimizer(const Store& store, std::uint64_t alloc);

// Inputs smaller than `least_input` are not counted as kept.
LiveSums live_sums(const Store& store, const PoolSet& pools, const Float64Blocks& wide, Moment at, Bytes least_input);

}  // namespace vramscope::analyze
