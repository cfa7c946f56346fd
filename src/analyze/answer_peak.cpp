// What is live at an instant, in one sentence.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "analyze/gen/texts.h"
#include "analyze/query/state.h"
#include "analyze/verdict/peak_rise.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// "at the steady peak (steps 3 to 20)", "at 6.2 s (step 4)"
std::string instant_in_words(const Engine& engine, const LiveRequest& request, const Live& live) {
  const std::string step = live.step > 0 ? fmt::format(" (step {})", live.step) : "";
  const std::string_view words = instant_words(engine, request.at, request.place);
  if (words == kSteadyPeak.words) {
    const Steps steps = engine.steps(request.place);
    return fmt::format("{} (steps {} to {})", words, steps.steps[steps.steady_first].number,
                       steps.steps[steps.steady_last].number);
  }
  if (!words.empty()) return std::string(words) + (request.at == "end" ? "" : step);
  return fmt::format("at {}{}", support::format_duration(live.time_us), step);
}

// ", 12.0 MiB of it in conv2d_1": the layer that holds the most, or the category if no layer is known.
std::string largest_holder(const Engine& engine, const LiveRequest& request) {
  for (const By by : {By::layer, By::category}) {
    const auto groups = engine.live({.at = request.at, .by = {by}, .where = request.where, .place = request.place, .limit = 0});
    if (!groups) return {};
    for (const Group& group : groups->groups)
      if (!group.keys[0].empty())
        return by == By::layer ? fmt::format(", {} of it in {}", format_size(group.bytes), layer_in_words(group.keys[0]))
                               : fmt::format(", {} of it {}", format_size(group.bytes), group.keys[0]);
  }
  return {};
}

}  // namespace

std::string_view instant_words(const Engine& engine, std::string_view at, int place) {
  const auto where = engine.state().place(place);
  if (at == kSteadyPeak.name) return where && (*where)->steady ? kSteadyPeak.words : kPeak.words;
  const auto* const named = std::ranges::find(kNamedInstants, at, &NamedInstant::name);
  return named != std::end(kNamedInstants) ? named->words : "";
}

Result<Live> Engine::peak(const LiveRequest& request) const {
  auto live = this->live(request);
  if (!live) return live;
  const auto where = state_->place(request.place);
  if (!where) return std::unexpected(where.error());
  const Place& place = **where;
  if (live->count == 0) {
    live->sentence =
        request.where.empty() ? "Nothing was live." : fmt::format("Nothing that matches \"{}\" was live.", request.where);
    return live;
  }
  const std::string which = request.where.empty() ? "" : fmt::format(" that matches \"{}\"", request.where);
  // If events are missing, the blocks may add up to less or more than the peak.
  const bool incomplete = request.where.empty() && live->at == place.peak_at && place.peak != place.peak_known;
  std::string out =
      fmt::format("{}{}{} {}", place.order_exact ? "" : "At least ", format_size(incomplete ? place.peak : live->total), which,
                  instant_in_words(*this, request, *live));
  if (incomplete) out += fmt::format("; events are missing, and the blocks that are left add up to {}", format_size(live->total));
  out += largest_holder(*this, request);
  if (request.at == "steady" && request.where.empty())
    if (const auto rise = peak_rise(*state_, place)) out += "; " + in_words(*rise, place);
  live->sentence = out + ".";
  return live;
}

}  // namespace vramscope::analyze
