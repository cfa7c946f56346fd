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
    return fail(fmt::format("invalid size \"{}\": expected bytes, or a number with KiB, MiB, GiB or TiB", text));
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

// In tenths of the unit, as integers: a half is rounded up on every machine and in every program that shows the figure.
std::string format_in(std::uint64_t bytes, std::uint64_t unit) {
  const std::uint64_t whole = bytes / unit, tenths = (bytes % unit * 10 + unit / 2) / unit;
  return with_commas(fmt::format("{}.{}", whole + tenths / 10, tenths % 10));
}

SizeUnit unit_for(std::uint64_t largest) {
  constexpr std::uint64_t kMi = kKi * kKi;
  if (largest >= 1'000'000 * kMi) return {kKi * kMi, "GiB"};
  if (largest >= kMi) return {kMi, "MiB"};
  return largest >= kKi ? SizeUnit{kKi, "KiB"} : SizeUnit{1, "B"};
}

SizeUnit unit_named(std::string_view name) {
  for (const std::uint64_t bytes : {std::uint64_t{1}, kKi, kKi * kKi * 1'000'000})
    if (const SizeUnit unit = unit_for(bytes); unit.name == name) return unit;
  return unit_for(kKi * kKi);
}

std::string format_percent(double share) {
  const double tenths = std::floor(share * 1000 + 0.5);
  return fmt::format("{:.1f} %", tenths / 10);
}

std::string format_size(std::uint64_t bytes) {
  const SizeUnit unit = unit_for(bytes);
  return unit.bytes == 1 ? fmt::format("{} B", format_count(bytes))
                         : fmt::format("{} {}", format_in(bytes, unit.bytes), unit.name);
}

std::string format_plural(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", format_count(number), number == 1 ? one : many);
}

std::string format_duration(std::uint64_t microseconds) {
  if (microseconds < 1000) return fmt::format("{} µs", microseconds);
  if (microseconds < 1'000'000) return format_in(microseconds, 1000) + " ms";
  constexpr std::uint64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (microseconds < 10 * kMinute) return format_in(microseconds, kSecond) + " s";
  return microseconds < 3 * kHour ? format_in(microseconds, kMinute) + " min" : format_in(microseconds, kHour) + " h";
}

std::string short_command(std::string_view command) {
  const std::size_t script = command.find(".py");
  const std::size_t word = script == std::string_view::npos ? 0 : command.rfind(' ', script) + 1;  // npos + 1 = 0
  const std::string_view from = command.substr(word);
  const std::size_t end = std::min(from.find(' '), from.size());
  return std::string(from.substr(from.substr(0, end).rfind('/') + 1));
}

}  // namespace vramscope::support
