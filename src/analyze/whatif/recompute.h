// Activations that are computed again in the backward pass instead of being kept.
#pragma once

#include <string_view>

#include "analyze/whatif/rewriter.h"

namespace vramscope::analyze {

// `layers`: names separated by commas, each one a unit with all layers inside it; "all": each child of the model and each member
// of its lists. Returns the bytes per step that are not kept.
Bytes recompute_layers(const Store& store, const RecordedPool& recorded, std::string_view layers, Rewriter& rewriter);

}  // namespace vramscope::analyze
