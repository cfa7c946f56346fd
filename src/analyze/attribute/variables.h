// Blocks that a variable took over. The address of a variable is reported only occasionally; an assignment in between may replace
// its block with that of the assigned value.
#pragma once

#include <vector>

#include "analyze/attribute/attribute.h"
#include "analyze/attribute/tags.h"

namespace vramscope::analyze {

// Blocks like those reported as a variable's (allocated by the same graph op, with the same size), or whose op computes the
// value of an assignment, belong to that variable if they are kept: beyond their step, or until their op runs again in a loop
// of the graph. By kind: the name of the variable that its blocks hold, if it is known.
std::vector<std::uint32_t> follow_variables(const Store& draft, const Columns& columns, const TaggedBlocks& tagged,
                                            NameTable& names);

// A block has one category for its whole life, but the value that replaces a variable's is not the variable yet while the old
// one exists. At this moment, which users examine, each variable has one block. True if that changed anything.
bool settle_at(const Store& draft, const Columns& columns, const Attribution& attribution, NameTable& names, Moment at);

}  // namespace vramscope::analyze
