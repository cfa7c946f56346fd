#include "exporters/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "exporters/table_list.h"

namespace vramscope::exporters {

std::span<const Table> tables() {
  static const std::array kAll = {blocks_table(),   events_table(), steps_table(),   places_table(), ledger_table(),
                                  findings_table(), ooms_table(),   samples_table(), stacks_table(), settings_table()};
  return kAll;
}

Result<const Table*> table_named(std::string_view name) {
  const auto all = tables();
  if (name.empty()) return &all.front();
  const auto found = std::ranges::find(all, name, &Table::name);
  if (found != all.end()) return &*found;
  std::string known;
  for (const Table& table : all) known += fmt::format("{}{}", known.empty() ? "" : ", ", table.name);
  return fail(fmt::format("invalid table \"{}\": expected {}", name, known));
}

}  // namespace vramscope::exporters
