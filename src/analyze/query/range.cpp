// Questions about a time range or about single blocks.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/index/cohorts.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/filter_text.h"
#include "analyze/query/groups.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {
namespace {

// The first allocation born at or after an event: allocations are numbered in order of birth.
std::uint64_t first_born(const Store& store, std::uint64_t pos) {
  return static_cast<std::uint64_t>(std::lower_bound(store.birth.begin(), store.birth.end(), pos) - store.birth.begin());
}

// What a request with a time range is about.
struct Range {
  PoolSet pools;
  Filter filter;
  Moment from = 0, to = 0;
};

template <typename Request>
Result<Range> range_of(const Engine::State& state, const Request& request) {
  const Store& store = state.store;
  auto place = state.place(request.place);
  if (!place) return std::unexpected(place.error());
  auto filter = state.filter(request.where, kNever, request.place);
  if (!filter) return std::unexpected(filter.error());
  return Range{.pools = state.pools(**place),
               .filter = std::move(*filter),
               .from = request.t0_us == 0 ? 0 : store.moment_at(request.t0_us - 1),
               .to = request.t1_us == 0 ? store.events() : store.moment_at(request.t1_us)};
}

}  // namespace

Result<Top> Engine::top(const TopRequest& request) const {
  const Store& store = state_->store;
  auto range = range_of(*state_, request);
  if (!range) return std::unexpected(range.error());
  Grouper grouper(store, range->pools, &range->filter);
  Top out;
  GroupSums sums(store, {request.by});
  std::uint64_t first = first_born(store, range->from), end = first_born(store, range->to);
  // By cohort if its blocks cannot differ in the answer, otherwise block by block.
  std::vector<std::uint64_t> counts;
  if (request.by != By::step && request.by != By::name && !range->filter.single_blocks())
    counts = cohorts_between(store, first, end);
  for (std::size_t c = 0; c < counts.size(); ++c) {
    std::uint64_t a = store.cohorts[c].example;
    if (counts[c] == 0 || a >= store.allocs() || grouper.of(a) == kOut) continue;
    out.total += counts[c] * grouper.bytes(a);
    out.count += counts[c];
    sums.add(a, counts[c]);
  }
  for (std::uint64_t a = first; counts.empty() && a < end; ++a) {
    if (store.birth[a] == kNone32 || grouper.of(a) == kOut) continue;
    out.total += grouper.bytes(a);
    out.count += 1;
    sums.add(a);
  }
  std::uint64_t rest_count = 0;
  out.groups = sums.largest(request.limit, out.rest_bytes, rest_count, out.rest_groups);
  return out;
}

Result<Diff> Engine::diff(const DiffRequest& request) const {
  const Store& store = state_->store;
  auto a = state_->resolve(request.a, request.place), b = state_->resolve(request.b, request.place);
  if (!a) return std::unexpected(a.error());
  if (!b) return std::unexpected(b.error());
  auto place = state_->place(request.place);
  if (!place) return std::unexpected(place.error());
  auto filter = state_->filter(request.where, *b, request.place);
  if (!filter) return std::unexpected(filter.error());
  Grouper grouper(store, state_->pools(**place), &*filter);
  Diff out;
  out.a = *a;
  out.b = *b;
  std::map<std::string, DiffRow> rows;
  auto count = [&](Moment at, Moment other, Bytes DiffRow::* side, Bytes& total, Bytes& alone) {
    for_each_live(store, at, [&](std::uint32_t alloc) {
      if (grouper.of(alloc) == kOut) return;
      Bytes bytes = grouper.bytes(alloc);
      rows[block_text(store, alloc, request.by)].*side += bytes;
      total += bytes;
      if (!lives_at(store, alloc, other)) alone += bytes;
    });
  };
  count(*a, *b, &DiffRow::a, out.total_a, out.went);
  count(*b, *a, &DiffRow::b, out.total_b, out.came);
  for (auto& [key, row] : rows) {
    row.key = key;
    row.change = static_cast<std::int64_t>(row.b) - static_cast<std::int64_t>(row.a);
    out.rows.push_back(row);
  }
  std::ranges::stable_sort(out.rows, [](const DiffRow& x, const DiffRow& y) { return std::abs(x.change) > std::abs(y.change); });
  if (request.limit != 0 && out.rows.size() > request.limit) out.rows.resize(request.limit);
  return out;
}

Result<Block> Engine::allocation(std::uint64_t id) const {
  if (id >= state_->store.allocs() || state_->store.birth[id] == kNone32)
    return fail(fmt::format("there is no allocation {}; the trace has {}", id, state_->store.allocs()));
  return block_of(state_->store, id);
}

Result<std::vector<MemoryEvent>> Engine::events(const EventsRequest& request) const {
  const Store& store = state_->store;
  auto range = range_of(*state_, request);
  if (!range) return std::unexpected(range.error());
  Grouper grouper(store, range->pools, &range->filter);
  std::vector<MemoryEvent> out;
  for (std::uint64_t pos = range->from; pos < range->to && out.size() < request.limit; ++pos) {
    std::uint32_t ref = store.ref[pos];
    if (ref == kNone32 || (ref >> 1) >= store.allocs() || grouper.of(ref >> 1) == kOut) continue;
    out.push_back({pos + 1, store.time_of_event(pos), (ref & 1) != 0, block_of(store, ref >> 1)});
  }
  return out;
}

std::vector<Completion> Engine::complete(std::string_view text, std::size_t limit) const {
  std::vector<Completion> out;
  std::size_t start = text.find_last_of(" (");
  std::string_view last = start == std::string_view::npos ? text : text.substr(start + 1);
  std::size_t colon = last.find(':');
  if (colon == std::string_view::npos) {
    for (std::string_view field : filter_fields())
      if (field.starts_with(last)) out.push_back({std::string(field) + (field.back() == '@' ? "" : ":"), 0});
  } else if (auto by = by_from(last.substr(0, colon))) {
    LiveRequest request;
    request.by = {*by};
    request.limit = 0;
    std::string wanted = "*" + std::string(last.substr(colon + 1)) + "*";
    if (auto found = live(request))
      for (const Group& g : found->groups) {
        if (g.keys[0].empty() || !glob(wanted, g.keys[0])) continue;
        out.push_back({filter_term(last.substr(0, colon), g.keys[0]), g.bytes});
      }
  }
  if (out.size() > limit) out.resize(limit);
  return out;
}

std::vector<Sample> Engine::samples() const {
  std::vector<Sample> out;
  for (const auto& s : state_->store.device_samples)
    out.push_back({s.time_us, s.row.device, s.row.used, s.row.total, s.row.process, s.row.others});
  for (const auto& s : state_->store.host_samples) out.push_back({s.time_us, -1, s.row.rss, 0, s.row.rss, s.row.pinned});
  std::ranges::stable_sort(out, {}, &Sample::time_us);
  return out;
}

std::vector<Mark> Engine::marks(std::uint64_t t0_us, std::uint64_t t1_us, std::string_view kind) const {
  const Store& store = state_->store;
  std::vector<Mark> out;
  store.work.add(store.marks.size());
  std::map<std::tuple<std::uint32_t, int, std::uint32_t>, std::vector<std::size_t>> open;  // thread, kind, name
  for (const auto& m : store.marks) {
    std::string_view word = trace::name_of(m.row.kind);
    if (kind.empty() ? m.row.kind == trace::MarkKind::layer : word != kind) continue;
    auto key = std::tuple(m.thread, static_cast<int>(m.row.kind), static_cast<std::uint32_t>(m.row.name));
    if (m.row.edge == trace::MarkEdge::end) {
      auto& mine = open[key];
      if (mine.empty()) continue;
      out[mine.back()].end_us = m.time_us;
      out[mine.back()].end = m.pos;
      mine.pop_back();
      continue;
    }
    if (m.row.edge == trace::MarkEdge::begin) open[key].push_back(out.size());
    bool instant = m.row.edge == trace::MarkEdge::instant;
    out.push_back({std::string(word), std::string(store.text(m.row.name)), std::string(store.text(m.row.detail)), m.row.number,
                   m.time_us, instant ? m.time_us : store.duration_us(), m.pos, instant ? m.pos : store.events()});
  }
  std::erase_if(out, [&](const Mark& m) { return m.end_us < t0_us || (t1_us != 0 && m.begin_us > t1_us); });
  return out;
}

}  // namespace vramscope::analyze
