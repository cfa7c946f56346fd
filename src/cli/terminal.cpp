#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace vramscope::cli {

namespace {

constexpr std::size_t kNarrowest = 8;  // a name cut further says nothing

// Columns on the screen: code points, which is right for everything we print ourselves, without escape sequences.
std::size_t width_of(std::string_view text) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) ++out;
  }
  return out;
}

// Bytes of the character in front, or 0 where it is none that may be shown: no UTF-8, a control character (also those of two
// bytes, which terminals take for ESC and [), or one that breaks the line or turns the direction of the text round.
std::size_t harmless(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  if (at(0) < 0x80) return at(0) < 0x20 || at(0) == 0x7f ? 0 : 1;
  const std::size_t bytes = at(0) >= 0xf0 ? 4 : at(0) >= 0xe0 ? 3 : 2;
  if (at(0) < 0xc2 || at(0) > 0xf4 || text.size() < bytes) return 0;
  unsigned code = at(0) & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3f);
  }
  constexpr unsigned kFirst[] = {0, 0x80, 0x800, 0x10000};
  if (code < kFirst[bytes - 1] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  const bool turns = code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return code < 0xa0 || turns ? 0 : bytes;
}

// Cut to a width, with its colour kept.
std::string cut(const std::string& cell, std::size_t width) {
  if (width_of(cell) <= width) return cell;
  if (!cell.starts_with('\x1b')) return printable(cell, width);
  const std::size_t begin = cell.find('m') + 1, end = cell.rfind('\x1b');
  return cell.substr(0, begin) + printable(cell.substr(begin, end - begin), width) + cell.substr(end);
}

}  // namespace

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return std::min<std::size_t>(size.ws_col, 120);
  return 0;
}

std::string bold(std::string_view text, bool colour) {
  return colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}
std::string dim(std::string_view text, bool colour) { return colour ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text); }

std::string printable(std::string_view name, std::size_t width) {
  std::string out;
  while (!name.empty()) {
    const std::size_t bytes = harmless(name);
    if (bytes == 0) out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(name[0])));
    out += name.substr(0, bytes);
    name.remove_prefix(std::max<std::size_t>(1, bytes));
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

void Table::fit(std::vector<std::size_t>& widths, std::size_t most) const {
  const auto total = [&] {
    std::size_t sum = 0;
    for (const std::size_t width : widths) sum += width == 0 ? 0 : width + 2;
    return sum;
  };
  while (total() > most) {
    std::size_t victim = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (widths[i] > 0 && columns_[i].drop > 0 && (victim == columns_.size() || columns_[i].drop > columns_[victim].drop))
        victim = i;
    if (victim == columns_.size()) break;
    widths[victim] = 0;
  }
  while (total() > most) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].align == Align::left && widths[i] > kNarrowest && (widest == columns_.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == columns_.size()) return;
    --widths[widest];
  }
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string cell = i < cells.size() ? cut(cells[i], widths[i]) : std::string();
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
  if (const std::size_t most = terminal_width(); most > 0) fit(widths, most);
  std::string text = dim(line(heads, widths), colour) + "\n";
  for (const auto& row : rows_) text += line(row, widths) + "\n";
  if (!total_.empty()) text += bold(line(total_, widths), colour) + "\n";
  return text;
}

}  // namespace vramscope::cli
