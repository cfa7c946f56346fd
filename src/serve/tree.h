// Turns a flat list of groups with nested keys into a tree, for the charts of Peak.
#pragma once

#include <string_view>
#include <vector>

#include "analyze/api.h"
#include "serve/gen/rpc.h"

namespace vramscope::serve {

// "category,layer,op,line"; at most six.
Result<std::vector<analyze::By>> levels_from(std::string_view text);

// Parents before children, largest child first (categories at the top level: in the order of the timeline's stack). Beyond the
// largest few, the children of one parent become one node "n more". The category of a node is that of its largest part.
std::vector<TreeNode> tree_of(const std::vector<analyze::Group>& groups, const std::vector<analyze::By>& levels);

}  // namespace vramscope::serve
