#include "cli/show/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fmt/ranges.h>

namespace vramscope::cli {

namespace {

constexpr std::size_t kNarrowest = 8;                                // a shorter name would be meaningless
constexpr std::size_t kNarrowestName = 14, kNarrowestSentence = 24;  // before that, other columns go

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

// Bytes of the first character, or 0 if it must not be shown: invalid UTF-8, a control character (including those of two bytes,
// which terminals interpret as ESC and [), or one that breaks the line or reverses the direction of the text.
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

// Bytes of the first character if it is a space, in the sense of .NET: the runners of CI systems are written in it.
std::size_t space(std::string_view text) {
  for (const std::string_view one : {" ", "\u00a0", "\u1680", "\u202f", "\u205f", "\u3000"})
    if (text.starts_with(one)) return one.size();
  const bool wide = text.starts_with("\xe2\x80") && text.size() > 2 && static_cast<unsigned char>(text[2]) <= 0x8a;
  return wide ? 3 : 0;  // U+2000 to U+200A
}

// Whether CI systems obey a line because of this character: "::error::" at the start of a line, "##[error]" or "##vso[...]"
// anywhere. A name may be the first in its line.
bool commands(std::string_view rest, bool at_start) { return rest.starts_with("##") || (at_start && rest.starts_with("::")); }

// Lines of whole words; a word that is longer than a line has one of its own and is cut there.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> out(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, space - at);
    if (!out.back().empty() && width_of(out.back()) + 1 + width_of(word) > width) out.emplace_back();
    out.back() += (out.back().empty() ? "" : " ") + std::string(word);
    at = space + 1;
  }
  return out;
}

// Cut to a width, keeping its color.
std::string cut(const std::string& cell, std::size_t width) {
  if (width_of(cell) <= width) return cell;
  if (!cell.starts_with('\x1b')) return printable(cell, width);
  const std::size_t begin = cell.find('m') + 1, end = cell.rfind('\x1b');
  return cell.substr(0, begin) + printable(cell.substr(begin, end - begin), width) + cell.substr(end);
}

}  // namespace

std::size_t terminal_width() {
  static constexpr std::size_t kLeast = 21, kMost = 120;
  const auto usable = [](std::size_t columns) { return columns < kLeast ? 0 : std::min(columns, kMost); };
  if (const char* const wanted = std::getenv("COLUMNS"); wanted != nullptr) {
    std::size_t columns = 0;
    std::from_chars(wanted, wanted + std::strlen(wanted), columns);
    if (columns >= kLeast) return usable(columns);
  }
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? usable(size.ws_col) : 0;
}

std::string bold(std::string_view text, bool colour) {
  return colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}
std::string dim(std::string_view text, bool colour) { return colour ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text); }

std::string paragraph(std::string_view text, std::size_t indent) {
  const std::string margin(indent, ' ');
  const std::size_t width = terminal_width();
  if (width <= indent + kNarrowestSentence) return fmt::format("{}{}\n", margin, text);
  std::string out;
  for (const std::string& line : wrapped(text, width - indent)) out += margin + line + "\n";
  return out;
}

std::string printable(std::string_view name, std::size_t width) {
  std::string out;
  for (bool at_start = true; !name.empty();) {
    const std::size_t bytes = commands(name, at_start) ? 0 : harmless(name);
    at_start = at_start && space(name) > 0;
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

std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += printable(text.substr(0, end));
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<std::string> Table::fit(std::vector<std::size_t>& widths, std::size_t most) const {
  std::vector<std::string> dropped;
  const auto total = [&] {
    std::size_t sum = 0;
    for (const std::size_t width : widths) sum += width == 0 ? 0 : width + 2;
    return sum;
  };
  const auto drop = [&](std::size_t i) {
    if (columns_[i].head.find_first_not_of(' ') != std::string::npos) dropped.push_back(columns_[i].head);
    widths[i] = 0;
  };
  // What a name or a sentence needs at least is not a reason to drop another column.
  const auto narrowest = [&](std::size_t i) {
    if (columns_[i].align == Align::right) return widths[i];
    return std::min(widths[i], columns_[i].align == Align::sentence ? kNarrowestSentence : kNarrowestName);
  };
  const auto least = [&] {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) sum += widths[i] == 0 ? 0 : narrowest(i) + 2;
    return sum;
  };
  while (least() > most) {
    std::size_t victim = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (widths[i] > 0 && columns_[i].drop > 0 && (victim == columns_.size() || columns_[i].drop > columns_[victim].drop))
        victim = i;
    if (victim == columns_.size()) break;
    drop(victim);
  }
  for (std::size_t i = columns_.size(); i-- > 1 && least() > most;)
    if (widths[i] > 0) drop(i);
  while (total() > most) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].align != Align::right && widths[i] > kNarrowest &&
          (widest == columns_.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return dropped;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string cell = i < cells.size() ? cut(cells[i], widths[i]) : std::string();
    const std::string padding(widths[i] - std::min(widths[i], width_of(cell)), ' ');
    text += "  " + (columns_[i].align == Align::right ? padding + cell : cell + padding);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// One row, or several lines where a sentence is longer than its column.
std::string Table::rows(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::vector<std::vector<std::string>> lines = {cells};
  for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
    if (columns_[i].align != Align::sentence || widths[i] == 0) continue;
    const std::vector<std::string> parts = wrapped(cells[i], widths[i]);
    while (lines.size() < parts.size()) lines.emplace_back(cells.size());
    for (std::size_t part = 0; part < parts.size(); ++part) lines[part][i] = parts[part];
  }
  std::string out;
  for (const auto& each : lines) out += line(each, widths) + "\n";
  return out;
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
  std::vector<std::string> dropped;
  if (const std::size_t most = terminal_width(); most > 0) dropped = fit(widths, most);
  std::string text = dim(line(heads, widths), colour) + "\n";
  for (const auto& row : rows_) text += rows(row, widths);
  if (!total_.empty()) text += bold(line(total_, widths), colour) + "\n";
  if (!dropped.empty()) {
    const std::string note = paragraph(fmt::format("Not shown at this width: {}.", fmt::join(dropped, ", ")), 2);
    text += dim(note.substr(0, note.size() - 1), colour) + "\n";
  }
  return text;
}

}  // namespace vramscope::cli
