#include "analyze/index/name_table.h"

#include <algorithm>
#include <functional>

namespace vramscope::analyze {

std::uint32_t NameTable::id(std::string_view text) {
  if (text.empty()) return 0;
  if ((used_ + 1) * 2 > slots_.size()) grow();
  std::uint64_t hash = std::hash<std::string_view>{}(text);
  for (std::size_t i = hash % slots_.size();; i = (i + 1) % slots_.size()) {
    auto& [h, slot] = slots_[i];
    if (slot == 0) {
      h = hash;
      slot = static_cast<std::uint32_t>(texts_.size()) + 1;
      texts_.emplace_back(text);
      ++used_;
      return slot - 1;
    }
    if (h == hash && texts_[slot - 1] == text) return slot - 1;
  }
}

void NameTable::grow() {
  auto old = std::move(slots_);
  slots_.assign(std::max<std::size_t>(64, old.size() * 2), {0, 0});
  for (auto [h, slot] : old) {
    if (slot == 0) continue;
    std::size_t i = h % slots_.size();
    while (slots_[i].second != 0) i = (i + 1) % slots_.size();
    slots_[i] = {h, slot};
  }
}

}  // namespace vramscope::analyze
