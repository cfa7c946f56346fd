#include "analyze/verdict/notable.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/query/instant_text.h"
#include "support/sentence.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::size_t kMostOfAKind = 4;

std::string in_step(std::int64_t step) { return step > 0 ? fmt::format(", step {}", step) : std::string(); }

void add_failures(const Ooms& ooms, std::vector<NotableInstant>& out) {
  for (std::size_t i = 0; i < std::min(kMostOfAKind, ooms.events.size()); ++i)
    out.push_back({failure_label(ooms.events[i], ooms.events[i].step), fmt::format("oom:{}", i + 1)});
}

void add_growth(const Engine& engine, const Fragmentation& fragmentation, std::vector<NotableInstant>& out) {
  std::vector<Grown> largest(fragmentation.grown);
  std::ranges::stable_sort(largest, std::greater{}, &Grown::grew_by);
  largest.resize(std::min(kMostOfAKind, largest.size()));
  std::ranges::sort(largest, {}, &Grown::at);
  for (const Grown& grown : largest)
    out.push_back({fmt::format("grew by {} although enough was free{}", format_size(grown.grew_by), in_step(grown.step)),
                   instant_text(engine, grown.at)});
  const FragPoint& worst = fragmentation.worst;
  if (worst.unusable > 0)
    out.push_back(
        {fmt::format("most unusable: {}{}", format_size(worst.unusable), in_step(worst.step)), instant_text(engine, worst.at)});
}

}  // namespace

std::string failure_label(const OomEvent& event, std::int64_t step) {
  return fmt::format("out of memory{}: {} requested", in_step(step), format_size(event.requested));
}

std::vector<NotableInstant> notable_instants(const Engine& engine, const Ooms& ooms, const Fragmentation* fragmentation) {
  std::vector<NotableInstant> out;
  add_failures(ooms, out);
  if (fragmentation != nullptr) add_growth(engine, *fragmentation, out);
  const int place = engine.main_place();
  if (place >= 0 && engine.places()[static_cast<std::size_t>(place)].steady) out.push_back({"steady peak", "steady"});
  out.push_back({"peak", "peak"});
  out.push_back({"end", "end"});
  return out;
}

std::string instant_of(const Engine& engine, const Ooms& ooms, const Fragmentation* fragmentation, const Finding& finding) {
  if (finding.id == "fragmentation") {
    for (std::size_t i = ooms.events.size(); i-- > 0;)
      if (ooms.events[i].verdict == "fragmentation") return fmt::format("oom:{}", i + 1);
    if (fragmentation != nullptr && !fragmentation->grown.empty())
      return instant_text(engine, std::ranges::max_element(fragmentation->grown, {}, &Grown::grew_by)->at);
  }
  // "moment:9749" becomes a time in its step, and "oom" the last failed request, of which findings speak.
  if (finding.at == "oom" && !ooms.events.empty()) return fmt::format("oom:{}", ooms.events.size());
  if (!finding.at.starts_with("moment:")) return finding.at;
  const auto moment = engine.resolve(finding.at);
  return moment ? instant_text(engine, *moment) : finding.at;
}

std::string remedy_of_failure(const Ooms& ooms, const Findings& findings) {
  if (!ooms.events.empty() && ooms.events.back().verdict == "leak")
    for (const Finding& finding : findings.findings)
      if (finding.view == "leaks" && !finding.remedy.empty()) return support::as_sentence(finding.remedy);
  return support::as_sentence(ooms.advice);
}

}  // namespace vramscope::analyze
