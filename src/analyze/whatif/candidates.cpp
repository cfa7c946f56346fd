#include "analyze/whatif/candidates.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyze/framework.h"

namespace vramscope::analyze {
namespace {

using whatif::Scenario;

struct Model {
  std::string_view name;
  Scenario::Kind kind;
  std::string_view torch = {};  // settings
  bool growth = true;           // BFC
  bool for_all = false;         // offered if the framework is unknown
};

constexpr Model kModels[] = {
    {"default", Scenario::Kind::torch},
    {"expandable", Scenario::Kind::torch, "expandable_segments:True"},
    {"divisions", Scenario::Kind::torch, "roundup_power2_divisions:4"},
    {"max-split", Scenario::Kind::torch, "max_split_size_mb:256"},
    {.name = "growth", .kind = Scenario::Kind::bfc, .for_all = true},
    {.name = "preallocated", .kind = Scenario::Kind::bfc, .growth = false, .for_all = true},
    {.name = "async", .kind = Scenario::Kind::stream_pool, .for_all = true},
    {"none", Scenario::Kind::uncached},
};

// Null if the framework does not have it.
const AllocatorSetting* setting_of(const Model& model, const RecordedPool& recorded) {
  const std::span<const AllocatorSetting> all = framework(recorded.framework).allocators;
  const auto found = std::ranges::find(all, model.name, &AllocatorSetting::model);
  return found != all.end() ? &*found : nullptr;
}

Candidate from(const Model& model, const RecordedPool& recorded) {
  const AllocatorSetting* const own = setting_of(model, recorded);
  Candidate out{std::string(model.name), own != nullptr ? std::string(own->setting) : "", recorded.scenario};
  out.scenario.kind = model.kind;
  const int version = recorded.scenario.torch.version;
  if (model.kind == Scenario::Kind::torch) out.scenario.torch = *whatif::TorchSettings::parse(model.torch, version);
  if (model.kind == Scenario::Kind::bfc)
    out.scenario.bfc = {.growth = model.growth, .collection = recorded.scenario.bfc.collection};
  return out;
}

Candidate as_recorded(const RecordedPool& recorded) { return {"recorded", recorded.settings, recorded.scenario}; }

}  // namespace

std::vector<std::string> allocator_names() {
  std::vector<std::string> out;
  for (const Model& model : kModels) out.emplace_back(model.name);
  return out;
}

Result<Candidate> candidate(const RecordedPool& recorded, std::string_view asked) {
  if (asked.empty() || asked == "recorded") return as_recorded(recorded);
  if (const auto* found = std::ranges::find(kModels, asked, &Model::name); found != std::end(kModels))
    return from(*found, recorded);
  if (!asked.contains(':'))
    return fail(fmt::format("invalid allocator \"{}\": expected recorded, {}, or settings such as max_split_size_mb:128", asked,
                            fmt::join(allocator_names(), ", ")));
  const auto settings = whatif::TorchSettings::parse(asked, recorded.scenario.torch.version);
  if (!settings) return std::unexpected(settings.error());
  const std::string_view variable = framework(recorded.framework).allocator_variable;
  Candidate out{std::string(asked), variable.empty() ? "" : fmt::format("{}={}", variable, asked), recorded.scenario};
  out.scenario.kind = settings->stream_ordered ? Scenario::Kind::stream_pool : Scenario::Kind::torch;
  out.scenario.torch = *settings;
  return out;
}

Result<std::vector<Candidate>> candidates(const RecordedPool& recorded, std::string_view asked) {
  std::vector<Candidate> out{as_recorded(recorded)};
  if (!asked.empty()) {
    auto one = candidate(recorded, asked);
    if (!one) return std::unexpected(one.error());
    if (one->name != "recorded") out.push_back(std::move(*one));
    return out;
  }
  if (recorded.of_objects) return out;  // nothing is known of the allocator that another one would replace
  const bool unknown = framework(recorded.framework).allocators.empty();
  for (const Model& model : kModels) {
    const AllocatorSetting* const own = setting_of(model, recorded);
    if (own != nullptr ? own->offered : unknown && model.for_all) out.push_back(from(model, recorded));
  }
  return out;
}

}  // namespace vramscope::analyze
