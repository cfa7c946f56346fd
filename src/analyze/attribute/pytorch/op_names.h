// The recorder writes "layer/what", with the layer as named by named_modules(), and the phase instead of a region.
#pragma once

#include "analyze/attribute/op_names.h"

namespace vramscope::analyze::pytorch {

OpMeaning meaning_of(std::string_view op, std::string_view phase);

}  // namespace vramscope::analyze::pytorch
