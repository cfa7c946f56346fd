#include "analyze/attribute/pytorch/replay.h"

#include <algorithm>
#include <string>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze::pytorch {

extern const Framework kFramework;

namespace {

std::string version_of(const Store& store) {
  for (const std::string_view key : kFramework.version_settings)
    if (std::string version = setting(store, key); !version.empty()) return version;
  return {};
}

// A snapshot has the sizes and streams that the program asked for.
bool knows_requests(const Store& store, std::uint32_t pool) {
  return std::ranges::any_of(store.kinds, [&](const Kind& kind) { return kind.pool == pool && kind.requested != 0; });
}

}  // namespace

Status set_replay(const Store& store, Bytes limit, RecordedPool& pool) {
  std::string text = setting(store, "env.PYTORCH_CUDA_ALLOC_CONF");
  if (text.empty()) text = setting(store, "env.PYTORCH_ALLOC_CONF");
  const auto settings = whatif::TorchSettings::parse(text, whatif::TorchSettings::version_of(version_of(store)),
                                                     whatif::TorchSettings::UnknownKeys::ignored);
  if (!settings) return std::unexpected(settings.error());
  pool.scenario.torch = *settings;
  if (settings->stream_ordered) pool.scenario.kind = whatif::Scenario::Kind::stream_pool;
  pool.settings = text.empty() ? "PyTorch's defaults" : text;
  if (pool.on_host) {
    pool.assumptions.emplace_back("The run was recorded on the host; the blocks are replayed as if they were on a GPU.");
  } else if (!knows_requests(store, pool.pool)) {
    // Sizes that were granted are rounded already. Some are a little larger, because no remainder was split off, and would be
    // rounded up to the next division.
    pool.scenario.torch.divisions = {};
    pool.assumptions.emplace_back(
        "PyTorch reports neither streams nor requested sizes: all blocks are on one stream, and have the size that was granted.");
  }
  pool.scenario.torch.limit = limit;
  return {};
}

}  // namespace vramscope::analyze::pytorch
