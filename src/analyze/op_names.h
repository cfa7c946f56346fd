// What the name of an op says: its layer, the stage of a training step, the category of its result.
#pragma once

#include <string>
#include <string_view>

#include "analyze/store.h"

namespace vramscope::analyze {

// What is outside of all layers goes by what it is for. The Python side uses the same words.
inline constexpr std::string_view kOptimizerGroup = "(optimizer)", kLossGroup = "(loss and metrics)", kInputGroup = "(input)";

struct OpMeaning {
  std::string layer;  // "" = the name carries none
  Stage stage = Stage::other;
  trace::Category category = trace::Category::unknown;  // unknown: lifetime has to tell
};

// `region` is the framework's word for the kind of allocation (output, temp, persist, dynamic, or empty).
OpMeaning meaning_of(std::string_view op, std::string_view region, trace::Framework framework);

// The stage that a mark's word stands for; other where it stands for none.
Stage stage_from(std::string_view word);

}  // namespace vramscope::analyze
