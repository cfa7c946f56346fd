// Why an answer is empty or incomplete, and what to do about it.
#pragma once

#include <optional>
#include <string_view>

#include "analyze/api.h"
#include "analyze/gen/view_answers.h"

namespace vramscope::analyze {

inline constexpr std::string_view kNoAllocations = "the trace has no allocations";  // an error
inline constexpr std::string_view kNothingRecorded = "No allocation was recorded";

// Nothing if the answer has what was asked for.
std::optional<Absence> absence(const Steps& steps);
std::optional<Absence> absence(const Layers& layers);
std::optional<Absence> absence(const AddressMap& map);
// Of the end of a trace, or of a part of it.
std::optional<Absence> absence(const Overview& overview);

// For a valid filter that no block matches: figures of nothing would read like figures of the program.
std::optional<Absence> absence_of_matches(const Engine& engine, std::string_view where);

}  // namespace vramscope::analyze
