// Gives every block its layer, category and stage, each with the way it is known: reported by a tag, named by the op, or inferred
// from when the block was born and died.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribute/line_names.h"
#include "analyze/index/name_table.h"
#include "analyze/index/scan.h"

namespace vramscope::analyze {

// Fills layer, line, category and stage of every kind as far as names alone determine them.
void name_kinds(Tables& tables, const trace::Dictionaries& dictionaries, NameTable& names);

// The user's line behind a request: where its graph op was created, otherwise the innermost frame of its stack; "" if unknown.
std::string line_of(const Store& store, const trace::Site& site);

// Layer and line of a graph op as the Python side reported them; empty if it did not.
struct SourceTexts {
  std::string layer, line;
};
SourceTexts source_of(const trace::Dictionaries& dictionaries, const LineNames& lines, std::string_view op);

struct Attribution {
  std::vector<TaggedRow> tagged;
  std::uint64_t unmatched = 0;                  // tags without a live block at their address
  std::vector<std::uint32_t> variable_of_kind;  // the name of the variable that blocks of a kind hold; 0 if unknown
};

// Fills the column of attributes, which contains each block's thread on entry. `draft` shows the columns and tables that are
// ready.
Attribution attribute(const Store& draft, const Columns& columns, NameTable& names, unsigned threads);

}  // namespace vramscope::analyze
