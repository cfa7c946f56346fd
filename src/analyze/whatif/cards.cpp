#include "analyze/whatif/cards.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr Bytes mib(Bytes count) { return count << 20; }

// Total memory as nvidia-smi shows it.
constexpr Card kCards[] = {
    {"T4-16GB", mib(15360)},      {"V100-16GB", mib(16160)},    {"RTX4080-16GB", mib(16376)}, {"A10-24GB", mib(22731)},
    {"L4-24GB", mib(23034)},      {"RTX3090-24GB", mib(24576)}, {"RTX4090-24GB", mib(24564)}, {"V100-32GB", mib(32510)},
    {"RTX5090-32GB", mib(32607)}, {"A100-40GB", mib(40536)},    {"L40S-48GB", mib(46068)},    {"A100-80GB", mib(81251)},
    {"H100-80GB", mib(81559)},    {"H200-141GB", mib(143771)},  {"B200-180GB", mib(183359)},
};

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace

std::span<const Card> cards() { return kCards; }

Result<ChosenCard> card_from(std::string_view text) {
  for (const Card& card : kCards)
    if (same_name(card.name, text)) return ChosenCard{std::string(card.name), card.memory};
  if (const auto bytes = support::parse_size(text); bytes && *bytes > 0) return ChosenCard{std::string(text), *bytes};
  std::string names;
  for (const Card& card : kCards) names += fmt::format(", {}", card.name);
  return fail(fmt::format("invalid device \"{}\": expected a size such as 24GiB{}", text, names));
}

}  // namespace vramscope::analyze
