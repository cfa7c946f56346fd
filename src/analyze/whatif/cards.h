// Cards by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyze/basics.h"
#include "support/result.h"

namespace vramscope::analyze {

struct Card {
  std::string_view name;
  Bytes memory;  // as the driver reports it, which is less than the name says
};
std::span<const Card> cards();

struct ChosenCard {
  std::string name;
  Bytes memory = 0;
};
// "24GiB", or the name of a card in any case.
Result<ChosenCard> card_from(std::string_view text);

}  // namespace vramscope::analyze
