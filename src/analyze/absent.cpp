#include "analyze/absent.h"

#include <fmt/format.h>

#include "analyze/gen/texts.h"
#include "support/sentence.h"
#include "support/units.h"

namespace vramscope::analyze {

using support::as_sentence;

std::optional<Absence> absence(const Steps& steps) {
  if (!steps.steps.empty()) return std::nullopt;
  return Absence{"No steps were found", as_sentence(steps.why),
                 "Train for more steps, or call `vramscope.step()` at the start of each. The other views work without steps."};
}

std::optional<Absence> absence(const Layers& layers) {
  if (layers.rows.size() > 1 || (layers.rows.size() == 1 && !layers.rows[0].name.empty())) return std::nullopt;
  return Absence{"No layers are known", as_sentence(kWhyNoLayers),
                 "Record a Keras or PyTorch model with `vramscope run`, which marks layers automatically."};
}

std::optional<Absence> absence(const AddressMap& map) {
  if (!map.regions.empty()) return std::nullopt;
  return Absence{"No regions were recorded",
                 "No pool had allocated memory from the driver by this instant, or its regions were not recorded.",
                 "Choose a later instant, or record from the start of the program with `vramscope run`."};
}

std::optional<Absence> absence(const Overview& overview) {
  if (overview.damage.empty()) return std::nullopt;
  return Absence{overview.truncated ? fmt::format("The trace ends at {}, before the program exited",
                                                  support::format_duration(overview.duration_us))
                                    : "Part of this trace is damaged",
                 as_sentence(overview.damage), "If the spool folder still exists, run `vramscope recover DIR`."};
}

std::optional<Absence> absence_of_matches(const Engine& engine, std::string_view where) {
  if (!engine.check_filter(where)) return std::nullopt;
  const Status ok = engine.check_matches(where);
  if (ok) return std::nullopt;
  return Absence{std::string(kNoMatch.substr(0, kNoMatch.size() - 1)), as_sentence(ok.error().message),
                 std::string(kChangeTheFilter)};
}

}  // namespace vramscope::analyze
