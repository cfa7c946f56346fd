// Sizes and numbers as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace vramscope::support {

// "512", "64K", "512MiB", "1.5 GiB": powers of 1024; "5MB", "2 GB": powers of 1000. The error names the text. The one place that
// reads sizes: options, budgets and filters mean the same by the same text.
Result<std::uint64_t> parse_size(std::string_view text);

// The unit for figures up to `largest`: MiB from 1 to 999,999 of them, so that the figures of one run can be compared. The page
// has the same rule (ui/src/format/numbers.ts).
struct SizeUnit {
  std::uint64_t bytes;
  std::string_view name;
};
SizeUnit unit_for(std::uint64_t largest);
// By its name; MiB for any other.
SizeUnit unit_named(std::string_view name);
// "12.5 %", of a share of one: rounded half up, as in ui/src/format/numbers.ts.
std::string format_percent(double share);
// "0 B", "512 B", "1.5 KiB", "140,830.0 MiB": one decimal, rounded half up, thousands comma.
std::string format_size(std::uint64_t bytes);
// "1,234,567"
std::string format_count(std::uint64_t number);
// "1,234.5": the figure alone, in units of `unit` bytes.
std::string format_in(std::uint64_t bytes, std::uint64_t unit);
// "1 event", "2 events"
std::string format_plural(std::uint64_t number, std::string_view one, std::string_view many);
// "12 µs", "850.3 ms", "6.2 s", "12.5 min", "3.1 h"
std::string format_duration(std::uint64_t microseconds);

// What a person calls a program: "/usr/bin/python3 -u src/train.py --eager" is "train.py --eager".
std::string short_command(std::string_view command);

}  // namespace vramscope::support
