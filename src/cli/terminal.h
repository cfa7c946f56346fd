// Tables and emphasis for people; plain text where nobody looks.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace vramscope::cli {

// True for a terminal that shows colours, unless NO_COLOR is set.
bool wants_colour(std::FILE* stream);

// Text with an attribute, where the stream wants it.
std::string bold(std::string_view text, bool colour);
std::string dim(std::string_view text, bool colour);

// Control characters as escapes, so that a name cannot move the cursor. Cut in the middle at `width` characters (0 = never).
std::string printable(std::string_view name, std::size_t width = 0);

// Two spaces of indent, heads in capitals and dim, two spaces between columns, numbers right, no rules, the total last and bold.
class Table {
 public:
  enum class Align { left, right };
  void column(std::string_view head, Align align = Align::right) { columns_.push_back({std::string(head), align}); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void total(std::vector<std::string> cells) { total_ = std::move(cells); }
  std::string text(bool colour) const;

 private:
  struct Column {
    std::string head;
    Align align;
  };
  std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> total_;
};

}  // namespace vramscope::cli
