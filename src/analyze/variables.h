// Blocks that a variable took over. A variable is told by the address that it has now and then; an assignment in between may give
// it the block of the value that it is assigned.
#pragma once

#include <map>

#include "analyze/attribute.h"

namespace vramscope::analyze {

using TaggedBlocks = std::map<std::uint32_t, const Stamped<trace::Tag>*>;  // by block; the newest tag of each

// Blocks like those that were told to be a variable's (made by the same op of a graph, as large), or whose op makes the value of
// an assignment, are that variable's where they are kept: beyond their step, or until their op runs again in a loop of the graph.
void follow_variables(const Store& draft, const Columns& columns, const TaggedBlocks& told);

}  // namespace vramscope::analyze
