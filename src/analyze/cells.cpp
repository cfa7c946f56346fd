#include "analyze/cells.h"

#include <tsl/robin_map.h>

#include <algorithm>

#include "analyze/parallel.h"
#include "support/hash.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kMostCounts = 32u << 20;  // numbers; beyond it the table would cost more than it saves

using IdByKey = tsl::robin_map<std::uint64_t, std::uint32_t, support::Mix>;

std::uint64_t key_of(std::uint32_t kind, std::uint32_t note) { return std::uint64_t{kind} << 32 | note; }

// Calls f(cell key, allocation) for a range. Runs of one kind mostly have one note.
template <typename F>
void each(const Store& store, std::uint64_t from, std::uint64_t to, F&& f) {
  for (std::uint64_t a = from; a < to; ++a)
    if (store.birth[a] != kNone32) f(key_of(store.kind[a], store.note[a]), a);
}

// Remembers the last cell of each kind: nearly every allocation is answered without hashing.
class CellIds {
 public:
  explicit CellIds(std::size_t kinds) : last_(kinds + 1, {~std::uint64_t{0}, 0}) {}
  template <typename Make>
  std::uint32_t of(std::uint64_t key, Make&& make) {
    auto& [seen, id] = last_[std::min<std::size_t>(key >> 32, last_.size() - 1)];
    if (seen != key) {
      auto [it, fresh] = ids_.try_emplace(key, 0u);
      if (fresh) it.value() = make();
      seen = key;
      id = it.value();
    }
    return id;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> last_;
  IdByKey ids_;
};

}  // namespace

CellTable count_cells(const Store& draft, unsigned threads) {
  CellTable out;
  std::size_t blocks = (draft.allocs() + kCellBlock - 1) / kCellBlock;
  struct Part {
    std::vector<Cell> cells;
    std::vector<std::uint32_t> counts;
  };
  std::vector<Part> parts(blocks);
  parallel(threads, blocks, [&](std::size_t b, unsigned) {
    Part& part = parts[b];
    CellIds ids(draft.kinds.size());
    each(draft, b * kCellBlock, std::min<std::uint64_t>(draft.allocs(), (b + 1) * kCellBlock),
         [&](std::uint64_t key, std::uint64_t alloc) {
           std::uint32_t id = ids.of(key, [&] {
             part.cells.push_back(
                 {static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(alloc)});
             part.counts.push_back(0);
             return static_cast<std::uint32_t>(part.cells.size() - 1);
           });
           ++part.counts[id];
         });
  });
  IdByKey ids;
  for (const Part& part : parts)
    for (const Cell& cell : part.cells)
      if (ids.try_emplace(key_of(cell.kind, cell.note), static_cast<std::uint32_t>(out.cells.size())).second)
        out.cells.push_back(cell);
  if (out.cells.size() * (blocks + 1) > kMostCounts) return {};
  out.counts.assign(out.cells.size() * (blocks + 1), 0);
  for (std::size_t b = 0; b < blocks; ++b) {
    auto row = out.counts.begin() + static_cast<std::ptrdiff_t>(b * out.cells.size());
    std::copy(row, row + static_cast<std::ptrdiff_t>(out.cells.size()), row + static_cast<std::ptrdiff_t>(out.cells.size()));
    for (std::size_t i = 0; i < parts[b].cells.size(); ++i)
      row[static_cast<std::ptrdiff_t>(out.cells.size() + ids[key_of(parts[b].cells[i].kind, parts[b].cells[i].note)])] +=
          parts[b].counts[i];
  }
  return out;
}

std::vector<std::uint64_t> cells_between(const Store& store, std::uint64_t from, std::uint64_t to) {
  std::size_t n = store.cells.size(), blocks = (store.allocs() + kCellBlock - 1) / kCellBlock;
  if (n == 0 || store.cell_counts.size() != n * (blocks + 1) || from >= to) return {};
  std::vector<std::uint64_t> out(n, 0);
  IdByKey known;
  for (std::uint32_t i = 0; i < n; ++i) known[key_of(store.cells[i].kind, store.cells[i].note)] = i;
  CellIds ids(store.kinds.size());
  auto scan = [&](std::uint64_t a, std::uint64_t b) {
    each(store, a, b, [&](std::uint64_t key, std::uint64_t) {
      std::uint32_t id = ids.of(key, [&] {
        auto it = known.find(key);
        return it == known.end() ? kNone32 : it->second;
      });
      if (id < n) ++out[id];
    });
  };
  std::uint64_t first = (from + kCellBlock - 1) / kCellBlock, last = to / kCellBlock;
  if (first >= last) {
    scan(from, to);
    return out;
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = store.cell_counts[last * n + i] - store.cell_counts[first * n + i];
  scan(from, first * kCellBlock);
  scan(last * kCellBlock, to);
  return out;
}

}  // namespace vramscope::analyze
