#include "support/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace vramscope::support {

namespace {

constexpr std::uint64_t kKi = 1024;

std::string with_commas(std::string digits) {
  const std::size_t end = digits.find('.') == std::string::npos ? digits.size() : digits.find('.');
  for (std::size_t at = end; at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto bad = [&] {
    return fail(fmt::format("'{}' is not a size: write bytes, or a number with KiB, MiB, GiB or TiB", text));
  };
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || !std::isfinite(number)) return bad();
  std::string unit;
  for (const char* at = rest; at != text.data() + text.size(); ++at)
    if (*at != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  static constexpr std::string_view kLetters = "kmgt";
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    const std::size_t power = kLetters.find(unit[0]);
    const std::string tail = unit.substr(1);
    if (power == std::string_view::npos || (!tail.empty() && tail != "b" && tail != "ib")) return bad();
    factor = std::pow(tail == "b" ? 1000.0 : static_cast<double>(kKi), static_cast<double>(power + 1));
  }
  const double bytes = number * factor;
  if (bytes >= 9.0e18) return bad();
  return static_cast<std::uint64_t>(bytes);
}

std::string format_count(std::uint64_t number) { return with_commas(fmt::format("{}", number)); }

std::string format_in(std::uint64_t bytes, std::uint64_t unit) {
  return with_commas(fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(unit)));
}

std::string format_size(std::uint64_t bytes) {
  if (bytes < kKi) return fmt::format("{} B", bytes);
  if (bytes < kKi * kKi) return format_in(bytes, kKi) + " KiB";
  if (bytes < kKi * kKi * kKi) return format_in(bytes, kKi * kKi) + " MiB";
  return format_in(bytes, kKi * kKi * kKi) + " GiB";
}

std::string format_plural(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", format_count(number), number == 1 ? one : many);
}

std::string format_duration(std::uint64_t microseconds) {
  if (microseconds < 1000) return fmt::format("{} µs", microseconds);
  const std::uint64_t milliseconds = microseconds / 1000;
  if (milliseconds < 1000) return fmt::format("{} ms", milliseconds);
  const std::uint64_t seconds = milliseconds / 1000;
  if (seconds < 60) return fmt::format("{:.1f} s", static_cast<double>(milliseconds) / 1000);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string short_command(std::string_view command) {
  const std::size_t script = command.find(".py");
  const std::size_t word = script == std::string_view::npos ? 0 : command.rfind(' ', script) + 1;  // npos + 1 = 0
  const std::string_view from = command.substr(word);
  const std::size_t end = std::min(from.find(' '), from.size());
  return std::string(from.substr(from.substr(0, end).rfind('/') + 1));
}

}  // namespace vramscope::support
