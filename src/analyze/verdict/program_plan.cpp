#include "analyze/verdict/program_plan.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::analyze {

using support::format_size;

std::optional<trace::ProgramPlan> plan_of(const Store& store, std::string_view program) {
  std::optional<trace::ProgramPlan> out;
  for (const trace::Report& report : store.reports)
    if (const auto* plan = std::get_if<trace::ProgramPlan>(&report); plan != nullptr && store.text(plan->function) == program)
      out = *plan;
  return out;
}

bool is_for_temporaries(const trace::ProgramPlan& plan, Bytes requested) {
  return requested <= plan.temporaries && requested > plan.temporaries / 2;
}

std::string in_words(const Store& store, const trace::ProgramPlan& plan, Bytes free) {
  const Bytes outputs = plan.outputs - std::min(plan.outputs, plan.aliased);
  return fmt::format(
      "XLA's plan of {}: {} of arguments, {} of temporaries and {} of results that do not take the place of donated arguments. "
      "Beside its arguments it needs {}; {} was free.",
      store.text(plan.function), format_size(plan.arguments), format_size(plan.temporaries), format_size(outputs),
      format_size(plan.temporaries + outputs), format_size(free));
}

}  // namespace vramscope::analyze
