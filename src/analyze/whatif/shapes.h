// What a single recording tells about how its allocations scale with the batch: shapes and categories.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analyze/attribute/categories.h"
#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// The numbers in a shape: "[8,64]" is 8 and 64.
std::vector<std::uint64_t> dimensions(std::string_view shape);

// The first dimension that most bytes of inputs have, or of activations if no input has a shape.
std::optional<std::uint64_t> batch_from_shapes(const Store& store, const RecordedPool& recorded);
// The same of the blocks born in [since, until).
std::optional<std::uint64_t> batch_from_shapes(const Store& store, const RecordedPool& recorded, Moment since, Moment until);

// The recorded batch where its size is not known: others are then percentages of it.
inline constexpr std::uint64_t kUnknownBatch = 100;

// By block. A block with a dimension that is the batch, or a multiple of it, is proportional to it, unless a part of the model
// has the same shape. Without a shape, the category decides, and the result is uncertain.
std::vector<whatif::Scaling> scalings_by_shape(const Store& store, const RecordedPool& recorded, std::uint64_t batch);

// The same for a request that is not among the blocks, such as one that failed.
struct ShapedRequest {
  Bytes bytes = 0;
  Shown category = Shown::unknown;
  std::string_view shape;
};
whatif::Scaling scaling_by_shape(const Store& store, const RecordedPool& recorded, std::uint64_t batch,
                                 const ShapedRequest& request);

}  // namespace vramscope::analyze
