#include "cli/terminal.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace vramscope::cli {

namespace {

// Columns on the screen: code points, which is right for everything we print ourselves.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

bool wants_colour(std::FILE* stream) {
  const char* no_colour = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  if ((no_colour != nullptr && *no_colour != '\0') || (term != nullptr && std::string_view(term) == "dumb")) return false;
  return isatty(fileno(stream)) == 1;
}

std::string bold(std::string_view text, bool colour) {
  return colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}
std::string dim(std::string_view text, bool colour) { return colour ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text); }

std::string printable(std::string_view name, std::size_t width) {
  std::string out;
  for (char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  if (width < 3 || width_of(out) <= width) return out;
  // Cut between characters, not inside one.
  const auto boundary = [&](std::size_t at) {
    while (at < out.size() && (static_cast<unsigned char>(out[at]) & 0xc0) == 0x80) ++at;
    return at;
  };
  const std::size_t tail = (width - 1) / 2;
  return out.substr(0, boundary(width - 1 - tail)) + "…" + out.substr(boundary(out.size() - tail));
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string cell = i < cells.size() ? cells[i] : std::string();
    const std::string padding(widths[i] - std::min(widths[i], width_of(cell)), ' ');
    text += "  " + (columns_[i].align == Align::left ? cell + padding : padding + cell);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Table::text(bool colour) const {
  std::vector<std::string> heads;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    heads.push_back(column.head);
    widths.push_back(width_of(column.head));
  }
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  };
  for (const auto& row : rows_) measure(row);
  measure(total_);
  std::string text = dim(line(heads, widths), colour) + "\n";
  for (const auto& row : rows_) text += line(row, widths) + "\n";
  if (!total_.empty()) text += bold(line(total_, widths), colour) + "\n";
  return text;
}

}  // namespace vramscope::cli
