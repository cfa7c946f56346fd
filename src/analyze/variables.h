// Blocks that a variable took over. A variable is told by the address that it has now and then; an assignment in between may give
// it the block of the value that it is assigned.
#pragma once

#include <map>
#include <vector>

#include "analyze/attribute.h"

namespace vramscope::analyze {

using TaggedBlocks = std::map<std::uint32_t, const Stamped<trace::Tag>*>;  // by block; the newest tag of each

// Blocks like those that were told to be a variable's (made by the same op of a graph, as large), or whose op makes the value of
// an assignment, are that variable's where they are kept: beyond their step, or until their op runs again in a loop of the graph.
// By kind: the name of the variable that its blocks hold, where it is known.
std::vector<std::uint32_t> follow_variables(const Store& draft, const Columns& columns, const TaggedBlocks& told,
                                            NameTable& names);

// A block has one category for all its life, but the value that replaces a variable's is not the variable yet while the old one
// is there. At this moment, which is what people look at, each variable has one block. True if that changed anything.
bool settle_at(const Store& draft, const Columns& columns, const Attribution& attribution, NameTable& names, Moment at);

}  // namespace vramscope::analyze
