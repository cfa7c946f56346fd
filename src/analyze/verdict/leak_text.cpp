#include "analyze/verdict/leak_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/verdict/headline.h"
#include "analyze/verdict/leak_origin.h"
#include "analyze/verdict/remedies.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

std::string rate_text(double bytes) { return format_size(static_cast<std::uint64_t>(std::llround(std::max(0.0, bytes)))); }

// ", kept by losses (train.py:31)"
std::string place_text(const Leaks& leaks, const Keeper* keeper) {
  if (keeper != nullptr) return ", kept by " + in_words(*keeper);
  if (leaks.rows.empty()) return {};
  const LeakRow& row = leaks.rows[0];
  if (!row.line.empty()) return fmt::format(", {} {}", row.replaced ? "made larger by" : "allocated at", row.line);
  return row.op.empty() ? "" : fmt::format(", made by {}", row.op);
}

}  // namespace

bool only_optimizer_grows(const Leaks& leaks) {
  return !leaks.rows.empty() &&
         std::ranges::all_of(leaks.rows, [](const LeakRow& row) { return row.category == name_of(Shown::optimizer_state); });
}

bool growth_matters(const Leaks& leaks, Bytes peak) {
  constexpr double kNumbers = 4096;  // bytes per step: a few tensors of one number
  return leaks.bytes_per_step >= kNumbers || is_useful(leaks.so_far, peak);
}

Finding held_tensors(const Keeper& keeper, const std::string& title, const std::string& remedy, Bytes bytes) {
  Finding out;
  out.id = "held-tensors";
  out.title = title;
  out.cause =
      fmt::format("A {} of {} {}{}.", keeper.container, keeper.owner, held_text(keeper), keeper.counted ? " at the end" : "");
  out.remedy = remedy;
  out.at_stake = bytes;
  out.view = "leaks";
  out.at = "end";
  return out;
}

void explain_no_growth(Leaks& out, std::size_t steps, const Undecided& undecided) {
  out.verdict = "cannot tell";
  if (undecided.slowing > 0) {
    out.saturates = true;
    out.why = fmt::format("memory grows more and more slowly and may stop after the {} recorded steps; record more steps", steps);
  } else if (undecided.few > 0 && steps < 3 * kFewestEvents) {
    out.why = fmt::format(
        "{} kept, but growth was seen in {} steps and {} are needed to distinguish it from a cache that fills up; record more "
        "steps",
        rate_text(undecided.few_bytes), undecided.seen, kFewestEvents);
  } else if (undecided.few > 0 && undecided.few_bytes > 0) {
    out.why = fmt::format("{} was kept occasionally, too rarely in {} steps to estimate a rate; record more steps",
                          rate_text(undecided.few_bytes), steps);
  } else if (undecided.noisy > 0 && steps < kFewestNoisy) {
    out.why = fmt::format("what is left after a step varies, and {} steps are too few to see a trend; record more steps", steps);
  } else {
    out.verdict = "not growing";
  }
}

std::string growing_sentence(const Leaks& leaks, const Keeper* keeper) {
  const std::string full =
      leaks.steps_to_full ? fmt::format("; the pool's limit is reached in about {}",
                                        support::format_plural(static_cast<std::uint64_t>(*leaks.steps_to_full), "step", "steps"))
                          : "";
  if (only_optimizer_grows(leaks))
    return fmt::format("The optimizer's state grows: {} per step since step {}, {} so far{}.", rate_text(leaks.bytes_per_step),
                       leaks.since_step, format_size(leaks.so_far), full);
  return fmt::format("Leak: {} per step since step {}, {} so far{}{}.", rate_text(leaks.bytes_per_step), leaks.since_step,
                     format_size(leaks.so_far), place_text(leaks, keeper), full);
}

std::string leak_advice(const Leaks& leaks, const Keeper* keeper, trace::Framework framework) {
  const LeakRow& row = leaks.rows[0];
  if (only_optimizer_grows(leaks)) return "limit what the optimizer keeps, such as the history_size of L-BFGS";
  if (row.replaced)
    return fmt::format(
        "give the block of {} a fixed size instead of replacing it with a larger one in each step, or write it out regularly",
        row.line.empty() ? row.op : row.line);
  if (keeper != nullptr)
    return fmt::format("{}: {} {}", remedy_for(Remedy::keep_a_number, framework), keeper->name, held_text(*keeper));
  if (row.line.empty()) return "find what keeps a reference to these blocks from step to step";
  return fmt::format("find what keeps the tensors allocated at {}; {}", row.line, remedy_for(Remedy::keep_a_number, framework));
}

std::string leak_sentence(const Leaks& leaks, const Store& store, const StepWindow& window) {
  if (leaks.verdict == "cannot tell") return fmt::format("Cannot tell whether it leaks: {}.", leaks.why);
  const std::int64_t first = store.steps[window.steps.front()].number, last = store.steps[window.steps.back()].number;
  const auto [low, high] = std::ranges::minmax(leaks.left_after);
  if (format_size(low) == format_size(high))
    return fmt::format("No leak: {} is left after each of the steps {} to {}, with no growth.", format_size(low), first, last);
  return fmt::format("No leak: between {} and {} is left after the steps {} to {}, without growth.", format_size(low),
                     format_size(high), first, last);
}

}  // namespace vramscope::analyze
