// A table's columns next to the values of its rows, so that the two cannot differ.
#pragma once

#include <array>
#include <optional>

#include "exporters/tables.h"

namespace vramscope::exporters {

// One value of a row into the sink, by its type.
inline void put(RowSink& sink, std::uint64_t value) { sink.number(value); }
inline void put(RowSink& sink, std::uint32_t value) { sink.number(value); }
inline void put(RowSink& sink, std::int64_t value) { sink.integer(value); }
inline void put(RowSink& sink, double value) { sink.real(value); }
inline void put(RowSink& sink, bool value) { sink.flag(value); }
inline void put(RowSink& sink, std::string_view value) { sink.text(value); }
inline void put(RowSink& sink, const std::string& value) { sink.text(value); }
template <typename T>
void put(RowSink& sink, const std::optional<T>& value) {
  if (value)
    put(sink, *value);
  else
    sink.none();
}

// `get` is a function of a row; what it returns determines the column's type.
template <typename Row>
struct ColumnOf {
  Column column;
  void (*write)(const Row& row, RowSink& sink);
};

template <typename T>
struct TypeOf {
  static constexpr bool kOptional = false;
  static constexpr Type kType = std::is_same_v<T, bool>       ? Type::flag
                                : std::is_floating_point_v<T> ? Type::real
                                : std::is_unsigned_v<T>       ? Type::number
                                : std::is_integral_v<T>       ? Type::integer
                                                              : Type::text;
};
template <typename T>
struct TypeOf<std::optional<T>> {
  static constexpr bool kOptional = true;
  static constexpr Type kType = TypeOf<T>::kType;
};

template <typename Row, auto Get>
constexpr ColumnOf<Row> column(std::string_view name) {
  using Value = std::remove_cvref_t<decltype(Get(std::declval<const Row&>()))>;
  return {{name, TypeOf<Value>::kType, TypeOf<Value>::kOptional}, [](const Row& row, RowSink& sink) { put(sink, Get(row)); }};
}

template <typename Row, std::size_t N>
constexpr std::array<Column, N> heads(const std::array<ColumnOf<Row>, N>& columns) {
  std::array<Column, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = columns[i].column;
  return out;
}

// False: the rest is not wanted.
template <typename Row, std::size_t N>
bool put_row(const std::array<ColumnOf<Row>, N>& columns, const Row& row, RowSink& sink) {
  for (const auto& each : columns) each.write(row, sink);
  return sink.end_row();
}

}  // namespace vramscope::exporters

// VS_COLUMN(Row, "granted", r.block.granted)
#define VS_COLUMN(Row, name, value) ::vramscope::exporters::column<Row, [](const Row& r) { return value; }>(name)
