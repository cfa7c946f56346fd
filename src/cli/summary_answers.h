// What the analysis adds to a summary: steps, phases, categories, findings.
#pragma once

#include <string>

#include "analyze/api.h"
#include "support/json_writer.h"

namespace vramscope::cli {

std::string summary_answers_text(const analyze::Engine& engine, const std::string& where = {});
// Members of the summary's JSON object: overview, steps, phases, categories, findings.
void summary_answers_json(const analyze::Engine& engine, const std::string& where, support::JsonWriter& json);

}  // namespace vramscope::cli
