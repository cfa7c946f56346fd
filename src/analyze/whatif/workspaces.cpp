#include "analyze/whatif/workspaces.h"

#include <algorithm>

#include "analyze/framework.h"

namespace vramscope::analyze {
namespace {

using whatif::What;

constexpr std::size_t kMostEvents = 8;  // that a workspace lives for: the op allocates its results too

}  // namespace

std::vector<char> optional_workspaces(const Store& store, const RecordedPool& recorded, std::vector<whatif::Scaling>& scalings) {
  std::vector<char> out(recorded.allocs.size(), 0);
  const auto words = framework(recorded.framework).ops_with_optional_workspace;
  if (words.empty() || recorded.on_host) return out;
  std::vector<std::size_t> born(recorded.allocs.size(), 0);
  std::vector<Bytes> bytes(recorded.allocs.size(), 0);
  for (std::size_t i = 0; i < recorded.events.size(); ++i) {
    const whatif::Event& event = recorded.events[i];
    if (event.what == What::alloc) {
      born[event.block] = i;
      bytes[event.block] = event.bytes;
      continue;
    }
    if (event.what != What::free || !scalings[event.block].uncertain || i - born[event.block] > kMostEvents) continue;
    const std::uint32_t alloc = recorded.allocs[event.block];
    if (alloc == kNone32) continue;  // not in the trace: a request that failed was not optional
    const std::string_view op = store.text(store.site_of(store.kind_of(alloc)).op);
    if (std::ranges::none_of(words, [&](std::string_view word) { return op.contains(word); })) continue;
    out[event.block] = 1;
    scalings[event.block] = {static_cast<double>(bytes[event.block]), 0, true};
  }
  return out;
}

}  // namespace vramscope::analyze
