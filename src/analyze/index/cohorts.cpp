#include "analyze/index/cohorts.h"

#include <tsl/robin_map.h>

#include <algorithm>

#include "analyze/index/parallel.h"
#include "support/secret_hash.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kMostCounts = 32u << 20;  // numbers; beyond it, the table would cost more than it saves

using IdByKey = tsl::robin_map<std::uint64_t, std::uint32_t, support::SecretHash>;

std::uint64_t key_of(std::uint32_t kind, std::uint32_t attributes) { return std::uint64_t{kind} << 32 | attributes; }
std::uint64_t key_of(const Cohort& cohort) { return key_of(cohort.kind, cohort.attributes); }

// Calls f(key of the cohort, allocation) for each allocation of a range that was born.
template <typename F>
void each(const Store& store, std::uint64_t from, std::uint64_t to, F&& f) {
  for (std::uint64_t a = from; a < to; ++a)
    if (store.birth[a] != kNone32) f(key_of(store.kind[a], store.attributes[a]), a);
}

// Remembers the last cohort of each kind: nearly every allocation is resolved without hashing.
class CohortIds {
 public:
  explicit CohortIds(std::size_t kinds) : last_(kinds + 1, {~std::uint64_t{0}, 0}) {}
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

CohortTable count_cohorts(const Store& draft, unsigned threads) {
  CohortTable out;
  std::size_t blocks = (draft.allocs() + kCohortBlock - 1) / kCohortBlock;
  struct Part {
    std::vector<Cohort> cohorts;
    std::vector<std::uint32_t> counts;
  };
  std::vector<Part> parts(blocks);
  parallel(threads, blocks, [&](std::size_t b, unsigned) {
    Part& part = parts[b];
    CohortIds ids(draft.kinds.size());
    each(draft, b * kCohortBlock, std::min<std::uint64_t>(draft.allocs(), (b + 1) * kCohortBlock),
         [&](std::uint64_t key, std::uint64_t alloc) {
           std::uint32_t id = ids.of(key, [&] {
             part.cohorts.push_back(
                 {static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(alloc)});
             part.counts.push_back(0);
             return static_cast<std::uint32_t>(part.cohorts.size() - 1);
           });
           ++part.counts[id];
         });
  });
  IdByKey ids;
  for (const Part& part : parts)
    for (const Cohort& cohort : part.cohorts)
      if (ids.try_emplace(key_of(cohort), static_cast<std::uint32_t>(out.cohorts.size())).second) out.cohorts.push_back(cohort);
  if (out.cohorts.size() * (blocks + 1) > kMostCounts) return {};
  out.counts.assign(out.cohorts.size() * (blocks + 1), 0);
  for (std::size_t b = 0; b < blocks; ++b) {
    auto row = out.counts.begin() + static_cast<std::ptrdiff_t>(b * out.cohorts.size());
    std::copy(row, row + static_cast<std::ptrdiff_t>(out.cohorts.size()), row + static_cast<std::ptrdiff_t>(out.cohorts.size()));
    for (std::size_t i = 0; i < parts[b].cohorts.size(); ++i)
      row[static_cast<std::ptrdiff_t>(out.cohorts.size() + ids[key_of(parts[b].cohorts[i])])] += parts[b].counts[i];
  }
  return out;
}

std::vector<std::uint64_t> cohorts_between(const Store& store, std::uint64_t from, std::uint64_t to) {
  std::size_t n = store.cohorts.size(), blocks = (store.allocs() + kCohortBlock - 1) / kCohortBlock;
  if (n == 0 || store.cohort_counts.size() != n * (blocks + 1) || from >= to) return {};
  std::vector<std::uint64_t> out(n, 0);
  IdByKey known;
  for (std::uint32_t i = 0; i < n; ++i) known[key_of(store.cohorts[i])] = i;
  CohortIds ids(store.kinds.size());
  auto scan = [&](std::uint64_t a, std::uint64_t b) {
    each(store, a, b, [&](std::uint64_t key, std::uint64_t) {
      std::uint32_t id = ids.of(key, [&] {
        auto it = known.find(key);
        return it == known.end() ? kNone32 : it->second;
      });
      if (id < n) ++out[id];
    });
  };
  std::uint64_t first = (from + kCohortBlock - 1) / kCohortBlock, last = to / kCohortBlock;
  if (first >= last) {
    scan(from, to);
    return out;
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = store.cohort_counts[last * n + i] - store.cohort_counts[first * n + i];
  scan(from, first * kCohortBlock);
  scan(last * kCohortBlock, to);
  return out;
}

}  // namespace vramscope::analyze
