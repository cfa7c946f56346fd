// Gives every block its layer, category and stage, each with the way it was known: told by a tag, named by the op, or inferred
// from when it was born and died.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/line_names.h"
#include "analyze/scan.h"
#include "analyze/step_marks.h"

namespace vramscope::analyze {

// What names alone say: fills layer, line, category and stage of every kind.
void name_kinds(std::vector<Kind>& kinds, const std::vector<Stamped<trace::Setting>>& settings, const trace::Dictionaries& words,
                NameTable& names);

// The user's line behind a request: where its graph op was made, else the innermost frame of its stack; "" where nobody knows.
std::string line_of(const trace::Dictionaries& words, const trace::Site& site);

// Layer and line of a graph op as the Python side told them; empty where it did not.
struct OpSourceWords {
  std::string layer, line;
};
OpSourceWords source_of(const trace::Dictionaries& words, const LineNames& lines, std::string_view op);

struct Attribution {
  std::vector<TaggedRow> tagged;
  std::uint64_t unmatched = 0;                  // tags for whose address no block was live
  std::vector<std::uint32_t> variable_of_kind;  // the name of the variable that blocks of a kind hold; 0 where it is not known
};

// Rewrites the note column, which holds each block's thread on entry. `draft` shows the columns and tables that are ready.
Attribution attribute(const Store& draft, const Columns& columns, NameTable& names, unsigned threads);

}  // namespace vramscope::analyze
