#include "analyze/steps/step_time.h"

#include <algorithm>
#include <utility>

namespace vramscope::analyze {
namespace {

constexpr std::uint64_t kMostEvents = 200'000;  // of the steps that are looked at: the others are like them

// Divides the time of one step after the other.
class Division {
 public:
  explicit Division(const Store& store) : store_(store) {}

  void add(const StepRow& step) {
    now_us_ = step.begin_us;
    owner_ = {};
    open_.clear();
    auto mark = std::ranges::lower_bound(store_.marks, step.begin, {}, &Stamped<trace::Mark>::pos);
    for (std::uint64_t pos = step.begin; pos <= step.end; ++pos) {
      for (; mark != store_.marks.end() && mark->pos == pos; ++mark)
        if (mark->time_us >= step.begin_us && mark->time_us <= step.end_us) on_mark(*mark);
      if (pos < step.end) on_event(pos);
    }
    spend(step.end_us);
    ++steps_;
  }

  StepTime mean(std::size_t most_ops) const {
    StepTime out;
    for (const auto& [owner, us] : spent_) {
      out.layers[owner.first] += us;
      if (!store_.text(owner.second).empty())
        out.ops.push_back(
            {std::string(store_.text(owner.second)), std::string(owner.first), us / std::max<std::uint64_t>(steps_, 1)});
    }
    for (auto& [layer, us] : out.layers) us /= std::max<std::uint64_t>(steps_, 1);
    std::ranges::stable_sort(out.ops, std::ranges::greater(), &OpTime::time_us);
    if (out.ops.size() > most_ops) out.ops.resize(most_ops);
    return out;
  }

 private:
  using Owner = std::pair<std::string_view, trace::StringId>;  // layer, op

  void on_mark(const Stamped<trace::Mark>& mark) {
    if (mark.row.kind != trace::MarkKind::layer) return;
    spend(mark.time_us);
    if (mark.row.edge == trace::MarkEdge::begin)
      open_.push_back(store_.text(mark.row.name));
    else if (!open_.empty())
      open_.pop_back();
    owner_ = {open_.empty() ? std::string_view() : open_.back(), trace::StringId{}};
  }

  void on_event(std::uint64_t pos) {
    const std::uint32_t ref = store_.ref[pos];
    if (ref == kNone32 || (ref & 1) != 0) return;
    spend(store_.time_of_event(pos));
    const std::uint32_t alloc = ref >> 1;
    owner_ = {store_.name(store_.attributes_of(alloc).layer()), store_.site_of(store_.kind_of(alloc)).op};
  }

  void spend(std::uint64_t until_us) {
    if (until_us <= now_us_) return;
    spent_[owner_] += until_us - now_us_;
    now_us_ = until_us;
  }

  const Store& store_;
  std::map<Owner, std::uint64_t> spent_;
  std::vector<std::string_view> open_;  // calls of layers
  Owner owner_;
  std::uint64_t now_us_ = 0, steps_ = 0;
};

}  // namespace

StepTime step_time(const Store& store, const Steady& steady, std::size_t most_ops) {
  Division division(store);
  if (!steady.has) return {};
  std::uint64_t events = 0;
  Moment end = 0;
  for (std::size_t i = steady.first; i <= steady.last && i < store.steps.size() && events < kMostEvents; ++i) {
    const StepRow& step = store.steps[i];
    if (step.kind != store.steps[steady.first].kind || step.begin < end || step.end < step.begin || step.end > store.events())
      continue;
    end = step.end;
    events += step.end - step.begin;
    division.add(step);
  }
  return division.mean(most_ops);
}

}  // namespace vramscope::analyze
