// The properties of one block as texts: the values that groupings show and filters compare.
#pragma once

#include <string>
#include <string_view>

#include "analyze/answers.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

// The parts that depend only on the kind.
std::string kind_text(const Store& store, const Kind& kind, By by);
// Any `by` of one block. "" = unknown.
std::string block_text(const Store& store, std::uint64_t alloc, By by);
bool depends_on_kind_only(By by);

// The step (of any kind) that contains the event, as an index into store.steps, or -1.
std::int64_t step_index(const Store& store, std::uint64_t pos);
std::string step_text(const Store& store, std::int64_t index);

std::string dtype_text(std::uint64_t dtype, trace::Framework framework);
std::string size_class(Bytes bytes);  // "1 MiB to 2 MiB"
std::string tag_name(const Store& store, std::uint64_t alloc);
Block block_of(const Store& store, std::uint64_t alloc);

}  // namespace vramscope::analyze
