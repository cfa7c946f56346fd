// Workspaces that a library asks for and can do without.
#pragma once

#include <vector>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// By block, 1 for workspaces of ops that use another algorithm if theirs is refused: short-lived blocks whose size does not
// follow the batch. Their scalings become constant, because which algorithm is chosen at another batch is not known.
std::vector<char> optional_workspaces(const Store& store, const RecordedPool& recorded, std::vector<whatif::Scaling>& scalings);

}  // namespace vramscope::analyze
