// One table as comma-separated values (RFC 4180), with a line of column names.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "exporters/format.h"
#include "exporters/tables.h"
#include "exporters/utf8.h"

namespace vramscope::exporters::csv {

extern const Format kFormat;

namespace {

class CsvRows final : public RowSink {
 public:
  explicit CsvRows(Output& out) : out_(out) {}

  void number(std::uint64_t value) override { print(value); }
  void integer(std::int64_t value) override { print(value); }
  void real(double value) override { print(value); }
  void flag(bool value) override { field(value ? "true" : "false"); }
  // A spreadsheet would take such a name for a formula, which may send what is in other cells to anybody.
  void text(std::string_view value) override {
    if (!value.empty() && std::string_view("=+-@\t\r").contains(value[0]))
      field("'" + std::string(value));
    else
      field(value);
  }
  void none() override { separate(); }
  bool end_row() override {
    out_.buffer() += '\n';
    first_ = true;
    out_.settle();
    return out_.good();
  }

 private:
  void separate() {
    if (!first_) out_.buffer() += ',';
    first_ = false;
  }
  template <typename T>
  void print(T value) {
    separate();
    fmt::format_to(std::back_inserter(out_.buffer()), FMT_COMPILE("{}"), value);
  }
  void field(std::string_view value) {
    separate();
    std::string& buffer = out_.buffer();
    if (value.find_first_of(",\"\n\r") == value.npos) {
      append_utf8(buffer, value);
      return;
    }
    buffer += '"';
    for (const char c : as_utf8(value)) buffer.append(c == '"' ? 2 : 1, c);
    buffer += '"';
  }

  Output& out_;
  bool first_ = true;
};

Status write(const Request& request, Output& out) {
  const auto table = table_named(request.table);
  if (!table) return std::unexpected(table.error());
  CsvRows rows(out);
  for (const Column& column : (*table)->columns) rows.text(column.name);
  rows.end_row();
  return (*table)->rows(request, rows);
}

}  // namespace

const Format kFormat{
    .name = "csv", .extension = ".csv", .opens_in = "spreadsheets, pandas", .takes = kTakesTable, .write = write};

}  // namespace vramscope::exporters::csv
