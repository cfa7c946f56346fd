// Tables and emphasis for people; plain text where nobody looks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/colour.h"

namespace vramscope::cli {

// Columns of the terminal on stdout, at most 120; 0 where it is none: nothing is wrapped or left out then.
std::size_t terminal_width();

// Text with an attribute, where the stream wants it.
std::string bold(std::string_view text, bool colour);
std::string dim(std::string_view text, bool colour);

// Control characters, and what is no text, as escapes, so that a name cannot move the cursor. Cut in the middle at `width`
// characters (0 = never).
std::string printable(std::string_view name, std::size_t width = 0);

// Two spaces of indent, heads in capitals and dim, two spaces between columns, numbers right, no rules, the total last and bold.
// On a narrow terminal columns with the highest `drop` go first, then names are cut in the middle. Cells may be painted.
class Table {
 public:
  enum class Align { left, right };
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
    int drop;  // 0 = stays
  };
  void fit(std::vector<std::size_t>& widths, std::size_t most) const;
  std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> total_;
};

}  // namespace vramscope::cli
