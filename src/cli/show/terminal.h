// Tables and emphasis for people; plain text if the output is not a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/show/colour.h"

namespace vramscope::cli {

// Columns of the output, at most 120: COLUMNS if that is set, as for git and ps, also into a pipe (watch(1) sets it for what it
// shows); otherwise those of the terminal on stdout. 0 if there is neither: then nothing is wrapped or omitted.
std::size_t terminal_width();

// Text with an attribute, if the stream supports it.
std::string bold(std::string_view text, bool colour);
std::string dim(std::string_view text, bool colour);

// Text in lines that fit the terminal, each after so many spaces; one line if the width is unknown.
std::string paragraph(std::string_view text, std::size_t indent);

// Control characters and invalid text as escapes, so that a name cannot move the cursor; the same for what a CI system would take
// for a command to itself ("::error::"). Cut in the middle at `width` characters (0 = never).
std::string printable(std::string_view name, std::size_t width = 0);
// The same for text of several lines, which stay lines.
std::string printable_lines(std::string_view text);

// Indented by two spaces, headings in dim capitals, two spaces between columns, numbers right-aligned, no rules, the total last
// and bold. On a narrow terminal, columns with the highest `drop` go first (a line below the table names them), then names are
// cut in the middle and sentences wrapped inside of their column, then columns go from the right: a row never breaks. Cells may
// be colored.
class Table {
 public:
  enum class Align { left, right, sentence };
  void column(std::string_view head, Align align = Align::right, int drop = 0) {
    columns_.push_back({std::string(head), align, drop});
  }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void total(std::vector<std::string> cells) { total_ = std::move(cells); }
  std::string text(bool colour) const;

 private:
  struct Column {
    std::string head;
    Align align;
    int drop;  // 0 = never dropped
  };
  // The heads of the columns that had to go.
  std::vector<std::string> fit(std::vector<std::size_t>& widths, std::size_t most) const;
  std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;
  std::string rows(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> total_;
};

}  // namespace vramscope::cli
