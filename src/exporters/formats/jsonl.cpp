// One table as JSON Lines: an object per row. Values that are missing are left out.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "exporters/format.h"
#include "exporters/tables.h"
#include "support/json_text.h"

namespace vramscope::exporters::jsonl {

extern const Format kFormat;

namespace {

class JsonRows final : public RowSink {
 public:
  JsonRows(const Table& table, Output& out) : columns_(table.columns), out_(out) {}

  void number(std::uint64_t value) override { print(value); }
  void integer(std::int64_t value) override { print(value); }
  void real(double value) override { std::isfinite(value) ? print(value) : none(); }
  void flag(bool value) override { print(value); }
  void text(std::string_view value) override {
    key();
    support::append_json_string(out_.buffer(), value);
  }
  void none() override { ++at_; }
  bool end_row() override {
    out_.buffer() += first_ ? "{}\n" : "}\n";
    at_ = 0;
    first_ = true;
    out_.settle();
    return out_.good();
  }

 private:
  void key() {
    std::string& buffer = out_.buffer();
    buffer += first_ ? "{\"" : ",\"";
    buffer += columns_[at_++].name;
    buffer += "\":";
    first_ = false;
  }
  template <typename T>
  void print(T value) {
    key();
    fmt::format_to(std::back_inserter(out_.buffer()), FMT_COMPILE("{}"), value);
  }

  std::span<const Column> columns_;
  Output& out_;
  std::size_t at_ = 0;
  bool first_ = true;
};

Status write(const Request& request, Output& out) {
  const auto table = table_named(request.table);
  if (!table) return std::unexpected(table.error());
  JsonRows rows(**table, out);
  return (*table)->rows(request, rows);
}

}  // namespace

const Format kFormat{.name = "jsonl", .extension = ".jsonl", .opens_in = "jq, pandas", .takes = kTakesTable, .write = write};

}  // namespace vramscope::exporters::jsonl
