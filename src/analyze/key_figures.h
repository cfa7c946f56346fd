// The figures that a reader wants first, each with what to know about it.
#pragma once

#include <vector>

#include "analyze/api.h"
#include "analyze/gen/view_answers.h"

namespace vramscope::analyze {

// Of the main place. `leaks` and `ledger` may be NULL.
std::vector<KeyFigure> key_figures(const Engine& engine, const Steps& steps, const Leaks* leaks, const Ledger* ledger);

// NULL if the ledger has no such line.
const LedgerLine* line_named(const Ledger& ledger, std::string_view name);

}  // namespace vramscope::analyze
