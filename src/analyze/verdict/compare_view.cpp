#include "analyze/verdict/compare_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/query/instant_text.h"
#include "support/units.h"

namespace vramscope::analyze {

CompareView compare_view(const Compare& compared, std::string_view at) {
  if (at == "same" && compared.same_place_at.size() == 2)
    return {compared.same_place_sentence,
            "Both runs are shown at the same point of the same step: the steady peak of the first run.", compared.same_place,
            compared.same_place_at};
  if (at == "peak") return {compared.at_peak_sentence, "Each run is shown at its own peak.", compared.at_peak, {"peak", "peak"}};
  const std::string own = compared.steady ? "steady" : "peak";
  return {compared.sentence, fmt::format("Compared {}.", compared.basis), compared.categories, {own, own}};
}

const Step* compared_step(const Engine& engine, const Steps& steps, std::string_view at) {
  const int index = engine.main_place();
  if (index < 0 || steps.steps.empty()) return nullptr;
  const Place& place = engine.places()[static_cast<std::size_t>(index)];
  return step_at(steps, engine.time_of(at == "steady" && place.steady ? place.steady_peak_at : place.peak_at));
}

std::string in_words(const Step* compared) {
  if (compared == nullptr) return "whole run";
  return fmt::format("step {}, {}", compared->number,
                     support::format_duration(std::max<std::uint64_t>(1, compared->end_us - compared->begin_us)));
}

CompareRow compare_row(std::string_view key, Bytes first, Bytes last) {
  return {std::string(key), {first, last}, static_cast<std::int64_t>(last) - static_cast<std::int64_t>(first)};
}

}  // namespace vramscope::analyze
