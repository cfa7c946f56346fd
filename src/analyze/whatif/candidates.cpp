#include "analyze/whatif/candidates.h"

#include <algorithm>

#include <fmt/format.h>

namespace vramscope::analyze {
namespace {

using whatif::Scenario;

struct Named {
  std::string_view name;
  Scenario::Kind kind;
  std::string_view torch;    // settings
  bool growth;               // BFC
  std::string_view setting;  // how to set it in the framework that has it
  bool torch_only, tensorflow_only;
  bool offered;  // without being asked for
};

// max_split_size_mb is not offered: it rarely helps, and makes runs with changing shapes much worse.
constexpr Named kNamed[] = {
    {"default", Scenario::Kind::torch, "", true, "PYTORCH_CUDA_ALLOC_CONF=", true, false, true},
    {"expandable", Scenario::Kind::torch, "expandable_segments:True", true, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
     true, false, true},
    {"divisions", Scenario::Kind::torch, "roundup_power2_divisions:4", true, "PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:4",
     true, false, true},
    {"max-split", Scenario::Kind::torch, "max_split_size_mb:256", true, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256", true,
     false, false},
    {"growth", Scenario::Kind::bfc, "", true, "TF_FORCE_GPU_ALLOW_GROWTH=true", false, true, true},
    {"preallocated", Scenario::Kind::bfc, "", false, "TF_FORCE_GPU_ALLOW_GROWTH=false, with a memory limit", false, true, true},
    {"async", Scenario::Kind::stream_pool, "", true, "", false, false, true},
    {"none", Scenario::Kind::uncached, "", true, "", false, false, false},
};

std::string_view async_setting(trace::Framework framework) {
  return framework == trace::Framework::pytorch ? "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"
                                                : "TF_GPU_ALLOCATOR=cuda_malloc_async";
}

Candidate from(const Named& named, const RecordedPool& recorded) {
  Candidate out{std::string(named.name), std::string(named.setting), recorded.scenario};
  out.scenario.kind = named.kind;
  const int version = recorded.scenario.torch.version;
  if (named.kind == Scenario::Kind::torch) out.scenario.torch = *whatif::TorchSettings::parse(named.torch, version);
  if (named.kind == Scenario::Kind::bfc)
    out.scenario.bfc = {.growth = named.growth, .collection = recorded.scenario.bfc.collection};
  if (named.kind == Scenario::Kind::stream_pool) out.setting = async_setting(recorded.framework);
  return out;
}

std::string all_names() {
  std::string out = "recorded";
  for (const Named& named : kNamed) out += fmt::format(", {}", named.name);
  return out;
}

Candidate as_recorded(const RecordedPool& recorded) { return {"recorded", recorded.settings, recorded.scenario}; }

}  // namespace

Result<Candidate> candidate(const RecordedPool& recorded, std::string_view asked) {
  if (asked.empty() || asked == "recorded") return as_recorded(recorded);
  if (const auto* found = std::ranges::find(kNamed, asked, &Named::name); found != std::end(kNamed))
    return from(*found, recorded);
  if (!asked.contains(':'))
    return fail(
        fmt::format("invalid allocator \"{}\": expected {}, or settings such as max_split_size_mb:128", asked, all_names()));
  const auto settings = whatif::TorchSettings::parse(asked, recorded.scenario.torch.version);
  if (!settings) return std::unexpected(settings.error());
  Candidate out{std::string(asked), fmt::format("PYTORCH_CUDA_ALLOC_CONF={}", asked), recorded.scenario};
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
  const bool torch = recorded.framework == trace::Framework::pytorch;
  for (const Named& named : kNamed)
    if (named.offered && (torch ? !named.tensorflow_only : !named.torch_only)) out.push_back(from(named, recorded));
  return out;
}

}  // namespace vramscope::analyze
