// A trace as tables with documented columns: what CSV, JSON Lines, Parquet, Arrow and SQL see.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "exporters/format.h"

namespace vramscope::exporters {

enum class Type : std::uint8_t { number, integer, real, flag, text };  // unsigned, signed, ...

struct Column {
  std::string_view name;
  Type type = Type::text;
  bool optional = false;  // a row may have no value
};

// Takes the values of a row in the order of the columns.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void number(std::uint64_t value) = 0;
  virtual void integer(std::int64_t value) = 0;
  virtual void real(double value) = 0;
  virtual void flag(bool value) = 0;
  virtual void text(std::string_view value) = 0;
  virtual void none() = 0;
  // After the last value of a row. False: the rest is not wanted.
  virtual bool end_row() = 0;
};

struct Table {
  std::string_view name;
  std::span<const Column> columns;
  Status (*rows)(const Request& request, RowSink& sink) = nullptr;
  unsigned takes = kTakesNothing;  // besides what its format takes
};

// All of them; the first is the default.
std::span<const Table> tables();
// The table of a request, or an error that lists them. An empty name is the default.
Result<const Table*> table_named(std::string_view name);

}  // namespace vramscope::exporters
