// The latest report of the Python side for each line of source code.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "analyze/attribute/line_names.h"
#include "analyze/index/store.h"

namespace vramscope::analyze {

// "train.py:31"
template <typename Row>
std::string reported_line(const Store& store, const Row& row) {
  return short_line(store.text(row.file), row.line);
}

// One per line of source code, ordered by file and line; for constants, one per line and op, for arguments of programs, one per
// line and category.
template <typename Row>
std::vector<Row> newest_reports(const Store& store) {
  std::map<std::string, Row> newest;
  for (const trace::Report& report : store.reports) {
    const Row* const row = std::get_if<Row>(&report);
    if (row == nullptr) continue;
    std::string place = fmt::format("{}:{}", store.text(row->file), row->line);
    if constexpr (requires { row->op; }) place += fmt::format(":{}", store.text(row->op));
    if constexpr (requires { row->category; }) place += fmt::format(":{}", static_cast<int>(row->category));
    newest.insert_or_assign(std::move(place), *row);
  }
  std::vector<Row> out;
  for (const auto& [place, row] : newest) out.push_back(row);
  return out;
}

}  // namespace vramscope::analyze
