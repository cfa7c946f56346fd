// A summary for people.
#pragma once

#include <string>

#include "analyze/answers.h"

namespace vramscope::cli {

// The sentence, the table of pools, what else is known, and the answers. Ends with a newline.
std::string summary_text(const analyze::Summary& summary, bool colour);

}  // namespace vramscope::cli
