#include "analyze/whatif/rewriter.h"

#include <cmath>

namespace vramscope::analyze {

using whatif::Event;
using whatif::What;

Rewriter::Rewriter(RecordedPool& recorded) : recorded_(recorded), edits_(recorded.allocs.size()) {
  for (std::size_t i = 0; i < recorded.events.size(); ++i) {
    const Event& event = recorded.events[i];
    if (event.what == What::alloc) edits_[event.block] = {event.bytes, i, recorded.events.size() + 1, 0, 0, false};
    if (event.what == What::free) edits_[event.block].died = i;
  }
}

std::size_t Rewriter::first_event_of_section(std::uint32_t section) const {
  for (std::uint32_t block = 0; block < blocks(); ++block)
    if (recorded_.sections[block] >= section) return edits_[block].born;
  return recorded_.events.size();
}

void Rewriter::scale(std::uint32_t block, double factor) {
  edits_[block].bytes = std::max<Bytes>(1, static_cast<Bytes>(std::llround(static_cast<double>(edits_[block].bytes) * factor)));
}

void Rewriter::suspend(std::uint32_t block, std::size_t from, std::size_t to) {
  edits_[block].leaves = from;
  edits_[block].returns = to;
}

void Rewriter::apply() {
  struct Placed {
    std::size_t at;
    int order;  // frees before allocations at the same position
    Event event;
  };
  std::vector<Placed> placed;
  auto next = static_cast<std::uint32_t>(edits_.size());
  const auto add_block = [&](std::uint32_t alloc, Shown category) {
    recorded_.allocs.push_back(alloc);
    recorded_.sections.push_back(0);
    recorded_.added.resize(next, Shown::unknown);
    recorded_.added.push_back(category);
    return next++;
  };
  for (std::uint32_t block = 0; block < edits_.size(); ++block) {
    const Edit& edit = edits_[block];
    if (edit.dropped) continue;
    Event alloc = recorded_.events[edit.born];
    alloc.bytes = edit.bytes;
    std::uint32_t last = block;
    placed.push_back({edit.born, 1, alloc});
    if (edit.returns > edit.leaves && edit.returns < edit.died) {
      placed.push_back({edit.leaves, 0, {0, block, 0, What::free, 0}});
      alloc.block = last = add_block(recorded_.allocs[block], Shown::unknown);
      placed.push_back({edit.returns, 1, alloc});
    }
    if (edit.died <= recorded_.events.size()) placed.push_back({edit.died, 0, {0, last, 0, What::free, 0}});
  }
  for (std::size_t i = 0; i < recorded_.events.size(); ++i)
    if (!whatif::is_of_block(recorded_.events[i])) placed.push_back({i, 0, recorded_.events[i]});
  for (const Inserted& block : inserted_) {
    if (block.until <= block.at) continue;
    const std::uint32_t number = add_block(kNone32, block.category);
    placed.push_back({block.at, 0, {block.bytes, number, 0, What::alloc, 0}});
    if (block.until != kNever) placed.push_back({block.until, 0, {0, number, 0, What::free, 0}});
  }
  std::ranges::stable_sort(placed,
                           [](const Placed& a, const Placed& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; });
  recorded_.events.clear();
  for (const Placed& one : placed) recorded_.events.push_back(one.event);
}

}  // namespace vramscope::analyze
