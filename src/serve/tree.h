// A flat list of groups with nested keys as a tree, for the pictures of Peak.
#pragma once

#include <string_view>
#include <vector>

#include "analyze/api.h"
#include "serve/gen/rpc.h"

namespace vramscope::serve {

// "category,layer,op,line"; at most six.
Result<std::vector<analyze::By>> levels_from(std::string_view text);

// Parents before children, largest child first (categories at the top level: in the order of the timeline's stack). Beyond the
// largest few, children of one parent are one node "n more". Each node's category is that of its largest part.
std::vector<TreeNode> tree_of(const std::vector<analyze::Group>& groups, const std::vector<analyze::By>& levels);

}  // namespace vramscope::serve
