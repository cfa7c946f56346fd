// A summary for people and for programs.
#pragma once

#include <functional>
#include <string>

#include "analyze/summary.h"
#include "support/json_writer.h"

namespace vramscope::cli {

// The answer in one sentence.
std::string summary_sentence(const analyze::Summary& summary);
// The sentence, the table of pools, and what else is known. Ends with a newline.
std::string summary_text(const analyze::Summary& summary, bool colour);
// `more` adds members to the object.
void summary_json(const analyze::Summary& summary, support::JsonWriter& json, const std::function<void()>& more = {});

}  // namespace vramscope::cli
