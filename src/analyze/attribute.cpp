#include "analyze/attribute.h"

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyze/lifetime.h"
#include "analyze/op_names.h"
#include "analyze/parallel.h"
#include "analyze/variables.h"

namespace vramscope::analyze {
namespace {

// What a thread was in the middle of, from `pos` on.
struct Scope {
  std::uint64_t pos = 0;
  std::uint32_t layer = 0;
  Stage stage = Stage::other;
};
using Timeline = std::vector<Scope>;

// Layer and tape marks hold for their thread; phase marks for the whole process.
class Scopes {
 public:
  Scopes(const Store& draft, NameTable& names) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> layers;  // by thread
    std::map<std::uint32_t, int> tapes;
    std::map<std::uint32_t, bool> after_layers;  // a tape is recording, and layers have been called
    std::vector<Stage> phases;
    const std::uint32_t loss = names.id(kLossGroup);
    for (const auto& m : draft.marks) {
      python_.insert(m.thread);
      bool begin = m.row.edge == trace::MarkEdge::begin, end = m.row.edge == trace::MarkEdge::end;
      if (m.row.kind == trace::MarkKind::phase) {
        Stage stage = stage_from(draft.text(m.row.name));
        if (begin) phases.push_back(stage);
        if (end && !phases.empty()) phases.pop_back();
        if (begin || end) process_.push_back({m.pos, 0, phases.empty() ? Stage::other : phases.back()});
        if (begin && stage == Stage::backward) after_layers[m.thread] = false;
      } else if (m.row.kind == trace::MarkKind::layer || m.row.kind == trace::MarkKind::tape) {
        auto& stack = layers[m.thread];
        int& tape = tapes[m.thread];
        if (m.row.kind == trace::MarkKind::tape) {
          tape += begin ? 1 : end && tape > 0 ? -1 : 0;
          if (begin) after_layers[m.thread] = false;
        } else if (begin) {
          stack.push_back(names.id(draft.text(m.row.name)));
        } else if (end && !stack.empty()) {
          stack.pop_back();
          after_layers[m.thread] = true;
        }
        const std::uint32_t outside = tape > 0 && after_layers[m.thread] ? loss : 0;
        thread_[m.thread].push_back({m.pos, stack.empty() ? outside : stack.back(), tape > 0 ? Stage::forward : Stage::other});
      }
    }
  }
  const Timeline* of_thread(std::uint32_t thread) const {
    auto it = thread_.find(thread);
    return it == thread_.end() ? nullptr : &it->second;
  }
  const Timeline& process() const { return process_; }
  bool is_python(std::uint32_t thread) const { return python_.contains(thread); }  // it told something
  // Where a backward pass begins for the whole process.
  std::vector<std::uint64_t> backward_passes() const {
    std::vector<std::uint64_t> out;
    for (const Scope& scope : process_)
      if (scope.stage == Stage::backward) out.push_back(scope.pos);
    return out;
  }
  bool any_thread() const { return !thread_.empty(); }

  static Scope at(const Timeline& timeline, std::uint64_t pos) {
    auto it = std::upper_bound(timeline.begin(), timeline.end(), pos, [](std::uint64_t p, const Scope& s) { return p < s.pos; });
    return it == timeline.begin() ? Scope{} : *--it;
  }

 private:
  tsl::robin_map<std::uint32_t, Timeline> thread_;
  tsl::robin_set<std::uint32_t> python_;
  Timeline process_;
};

std::size_t step_of(std::span<const StepRow> steps, std::uint64_t pos) {
  auto it = std::upper_bound(steps.begin(), steps.end(), pos, [](std::uint64_t p, const StepRow& s) { return p < s.begin; });
  if (it == steps.begin() || pos >= (it - 1)->end) return steps.size();
  return static_cast<std::size_t>(it - 1 - steps.begin());
}

// By step of training: where it was cut short, by running out of memory or by the end of the recording. What was freed after that
// was not given back because it had served.
std::vector<std::uint64_t> cut_at(const Store& draft, std::uint32_t training) {
  std::vector<std::uint64_t> out(draft.steps.size(), kNever);
  for (std::size_t s = 0; s < out.size(); ++s)
    if (draft.steps[s].open != 0 && draft.steps[s].kind == training) out[s] = draft.steps[s].end;
  for (const auto& oom : draft.ooms) {
    std::size_t s = oom.row.final ? step_of(draft.steps, oom.pos) : out.size();
    if (s < out.size() && draft.steps[s].kind == training) out[s] = std::min(out[s], oom.pos);
  }
  return out;
}

// PyTorch takes a workspace for cuBLAS from its own allocator when a layer first multiplies, and keeps it. Its size depends on
// the card alone: CUBLAS_WORKSPACE_CONFIG is :4096:2:16:8 by default, :4096:8 from Hopper on.
bool is_blas_workspace(const Store& draft, const Kind& kind) {
  const auto& pools = draft.words().pools;
  return kind.pool < pools.size() && pools[kind.pool].framework == trace::Framework::pytorch &&
         pools[kind.pool].memory == trace::Memory::device && (kind.granted == 8'519'680 || kind.granted == 33'554'432);
}

constexpr std::size_t kBlock = 1u << 18;

template <typename F>
void each_block(const Columns& columns, unsigned threads, F&& f) {
  parallel(threads, (columns.birth.size() + kBlock - 1) / kBlock,
           [&](std::size_t b, unsigned) { f(b * kBlock, std::min(columns.birth.size(), (b + 1) * kBlock)); });
}

bool is_of(trace::Framework framework, const Store& draft, const Kind& kind) {
  const auto& pools = draft.words().pools;
  return kind.pool < pools.size() && pools[kind.pool].framework == framework;
}

bool is_tensorflow(const Store& draft, const Kind& kind) { return is_of(trace::Framework::tensorflow, draft, kind); }

bool is_unnamed(const Store& draft, const Kind& kind, bool on_device) {
  const auto& pools = draft.words().pools;
  return is_tensorflow(draft, kind) && (pools[kind.pool].device >= 0) == on_device &&
         static_cast<std::uint32_t>(draft.site_of(kind).op) == 0;
}

// TensorFlow's input pipeline works in threads of its own, and its blocks in host memory have no op name. A thread that never ran
// an op by name is one of them.
class PipelineThreads {
 public:
  PipelineThreads(const Store& draft, const Columns& columns) : draft_(draft) {
    if (std::ranges::none_of(draft.kinds, [&](const Kind& kind) { return is_unnamed(draft, kind, false); })) return;
    std::uint32_t settled = kNone32;  // the last thread that is known to run ops by name: most blocks are of one
    for (std::size_t i = 0; i < columns.birth.size(); ++i) {
      std::uint32_t thread = columns.note[i];
      if (thread == settled || columns.birth[i] == kNone32 || named_.contains(thread)) continue;
      if (is_unnamed(draft, draft.kind_of(i), false)) {
        unnamed_.insert(thread);
      } else {
        named_.insert(settled = thread);
        unnamed_.erase(thread);
      }
    }
    for (const auto& mark : draft.marks) unnamed_.erase(mark.thread);
  }
  bool made(const Kind& kind, std::uint32_t thread) const { return unnamed_.contains(thread) && is_unnamed(draft_, kind, false); }

 private:
  const Store& draft_;
  tsl::robin_set<std::uint32_t> named_, unnamed_;
};

// Devices that run one program each go through a step at their own pace: where there are several, each has a slot of its own.
// Slot 0 is for everything together.
class DeviceSlots {
 public:
  explicit DeviceSlots(const Store& draft) {
    std::map<std::int64_t, std::size_t> devices;
    const auto& pools = draft.words().pools;
    for (const auto& pool : pools)
      if (pool.device >= 0 && pool.level == trace::Level::tensor) devices.try_emplace(pool.device, devices.size() + 1);
    of_pool_.assign(pools.size(), 0);
    if (devices.size() < 2) return;
    count_ = devices.size() + 1;
    for (std::size_t i = 0; i < pools.size(); ++i)
      if (auto found = devices.find(pools[i].device); found != devices.end()) of_pool_[i] = found->second;
  }
  std::size_t count() const { return count_; }
  std::size_t of(const Kind& kind) const { return kind.pool < of_pool_.size() ? of_pool_[kind.pool] : 0; }

 private:
  std::vector<std::size_t> of_pool_;
  std::size_t count_ = 1;
};

struct Hit {
  const Stamped<trace::Tag>* tag;
  std::uint32_t block;
};

// Blocks that a variable was told to have, and that were there while it had another one, before or after: somebody else's that
// the variable only shares, such as a constant that it is reset to. All variables are told between two marks.
std::vector<std::uint32_t> only_shared(const Store& draft, std::span<const Hit> hits) {
  std::vector<std::uint32_t> out;
  std::map<std::string_view, Hit> last;  // what each variable had when it was told before
  tsl::robin_set<std::uint32_t> told_before;
  std::size_t mark = 0;
  for (std::size_t from = 0, to = 0; from < hits.size(); from = to) {
    while (mark < draft.marks.size() && draft.marks[mark].pos < hits[from].tag->pos) ++mark;
    const std::uint64_t end = mark < draft.marks.size() ? draft.marks[mark].pos : kNever;
    tsl::robin_set<std::uint32_t> told;
    for (to = from; to < hits.size() && hits[to].tag->pos < end; ++to) told.insert(hits[to].block);
    for (const Hit& hit : hits.subspan(from, to - from)) {
      auto [it, first] = last.try_emplace(draft.text(hit.tag->row.name), hit);
      const Hit before = std::exchange(it->second, hit);
      if (first || before.block == hit.block || !is_tensorflow(draft, draft.kind_of(hit.block))) continue;
      if (!told.contains(before.block) && draft.death[before.block] > hit.tag->pos) out.push_back(before.block);
      if (!told_before.contains(hit.block) && draft.birth[hit.block] < before.tag->pos) out.push_back(hit.block);
    }
    told_before = std::move(told);
  }
  return out;
}

// Which block holds an address at a moment. Tags come in bursts; one look at the live set serves a burst.
TaggedBlocks resolve_tags(const Store& draft, std::uint64_t& unmatched) {
  TaggedBlocks out;
  std::vector<Hit> hits;
  constexpr std::uint64_t kBurst = 4096;
  for (std::size_t i = 0; i < draft.tags.size();) {
    std::uint64_t from = draft.tags[i].pos;
    std::map<std::uint64_t, std::uint32_t> live;  // by address
    auto holds = [&](std::uint32_t alloc) {
      const Kind& kind = draft.kind_of(alloc);
      return kind.pool < draft.words().pools.size() && draft.words().pools[kind.pool].level == trace::Level::tensor;
    };
    for_each_live(draft, from, [&](std::uint32_t alloc) {
      if (holds(alloc)) live[draft.address[alloc]] = alloc;
    });
    std::uint64_t pos = from;
    for (; i < draft.tags.size() && draft.tags[i].pos < from + kBurst; ++i) {
      for (; pos < draft.tags[i].pos; ++pos) {
        std::uint32_t ref = draft.ref[pos];
        if (ref == kNone32 || !holds(ref >> 1)) continue;
        if ((ref & 1) != 0)
          live.erase(draft.address[ref >> 1]);
        else
          live[draft.address[ref >> 1]] = ref >> 1;
      }
      const trace::Tag& tag = draft.tags[i].row;
      auto it = live.upper_bound(tag.address);
      const bool below_all = it == live.begin();
      if (!below_all) --it;
      if (below_all || tag.address - it->first >= std::max<std::uint64_t>(1, draft.kind_of(it->second).granted)) {
        ++unmatched;
        continue;
      }
      out[it->second] = &draft.tags[i];  // the newest word wins
      hits.push_back({&draft.tags[i], it->second});
    }
  }
  for (std::uint32_t block : only_shared(draft, hits)) out.erase(block);
  return out;
}

}  // namespace

Attribution attribute(const Store& draft, const Columns& columns, NameTable& names, unsigned threads) {
  Scopes scopes(draft, names);
  auto steps = draft.steps;
  std::uint64_t last_step_end = steps.empty() ? 0 : steps.back().end;
  auto stage_of = [&](std::uint64_t i, const Kind& kind, Scope& scope) {
    const Timeline* timeline = scopes.any_thread() ? scopes.of_thread(columns.note[i]) : nullptr;
    scope = timeline != nullptr ? Scopes::at(*timeline, columns.birth[i]) : Scope{};
    // The op's own name first, then what the process was in, then what the thread was in (a tape records the forward pass).
    // The op names of an evaluation are those of the forward pass.
    auto stage = static_cast<Stage>(kind.stage);
    if (!scopes.process().empty() && (stage == Stage::other || stage == Stage::forward)) {
      Stage process = Scopes::at(scopes.process(), columns.birth[i]).stage;
      if (process == Stage::evaluate || (stage == Stage::other && process != Stage::other)) stage = process;
    }
    if (stage == Stage::other) stage = scope.stage;
    return stage;
  };
  // Where the backward pass of each step begins. Not at its first op: what a gradient needs of the forward pass alone is computed
  // as soon as that is there. It is where the forward ops are behind and the backward ops ahead, as far as the order allows.
  const DeviceSlots slots(draft);
  std::vector<std::uint64_t> turns(steps.size() * slots.count(), kNever);
  parallel(threads, steps.size(), [&](std::size_t s, unsigned) {
    struct Lead {
      std::int64_t now = 0, best = 0;
      bool behind_best = true;
    };
    std::vector<Lead> leads(slots.count());
    auto count = [&](std::size_t slot, Stage stage, std::uint64_t pos) {
      Lead& lead = leads[slot];
      if (stage == Stage::forward && ++lead.now > lead.best) lead.best = lead.now, lead.behind_best = true;
      if (stage != Stage::backward) return;
      --lead.now;
      if (lead.behind_best) turns[s * slots.count() + slot] = pos;
      lead.behind_best = false;
    };
    for (std::uint64_t pos = steps[s].begin; pos < std::min<std::uint64_t>(steps[s].end, columns.ref.size()); ++pos) {
      std::uint32_t ref = columns.ref[pos];
      if (ref == kNone32 || (ref & 1) != 0) continue;
      Scope scope;
      const Kind& kind = draft.kind_of(ref >> 1);
      Stage stage = stage_of(ref >> 1, kind, scope);
      count(0, stage, pos);
      if (std::size_t slot = slots.of(kind); slot > 0) count(slot, stage, pos);
    }
  });
  // PyTorch tells when each backward pass begins, and a step may have several: gradients are accumulated, two networks take
  // turns. A block is of the one that comes next; behind the last one, of that.
  const std::vector<std::uint64_t> passes = scopes.backward_passes();
  auto backward = [&](std::size_t s, const Kind& kind, std::uint64_t birth) {
    if (is_of(trace::Framework::pytorch, draft, kind)) {
      auto next = std::ranges::upper_bound(passes, birth);
      if (next != passes.end() && *next < steps[s].end) return *next;
      if (next != passes.begin() && *(next - 1) >= steps[s].begin) return *(next - 1);
    }
    std::uint64_t own = turns[s * slots.count() + slots.of(kind)];
    return own != kNever ? own : turns[s * slots.count()];
  };
  const std::vector<std::uint64_t> cut = cut_at(draft, names.id("train"));
  const PipelineThreads pipeline(draft, columns);
  const bool slots_told = std::ranges::any_of(
      draft.tags, [](const Stamped<trace::Tag>& tag) { return tag.row.category == trace::Category::optimizer_state; });
  const std::uint32_t pipeline_name = names.id(kInputGroup), loss_name = names.id(kLossGroup),
                      optimizer_name = names.id(kOptimizerGroup);
  auto group_of = [&](trace::Category category, Stage stage) {
    if (category == trace::Category::input) return pipeline_name;
    if (category == trace::Category::unknown) return 0u;
    return stage == Stage::optimizer ? optimizer_name : stage == Stage::backward ? loss_name : 0u;
  };

  each_block(columns, threads, [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (columns.birth[i] == kNone32) continue;
      const Kind& kind = draft.kind_of(i);
      Scope scope;
      Stage stage = stage_of(i, kind, scope);
      auto category = static_cast<trace::Category>(kind.category);
      Known known = category == trace::Category::unknown ? Known::unknown : Known::named;
      std::uint32_t layer = kind.layer != 0 ? kind.layer : scope.layer;
      const Stage known_stage = stage;
      // Inside a layer's call it is no op of the input pipeline, whatever its name.
      if (static_cast<Stage>(kind.stage) == Stage::input && scope.layer != 0) {
        stage = scope.stage == Stage::other ? Stage::forward : scope.stage;
        category = trace::Category::unknown;
        known = Known::unknown;
      }
      // A tensor that Python makes of an array has no op. Outside of layers, and where nothing else was told, it is a batch.
      if (known == Known::unknown && known_stage == Stage::other && layer == 0 && scopes.is_python(columns.note[i]) &&
          is_unnamed(draft, kind, false)) {
        category = trace::Category::input;
        known = Known::inferred;
      }
      // In eager mode ops have no names that tell, but what runs was told.
      if (known == Known::unknown && known_stage == Stage::backward && is_tensorflow(draft, kind)) {
        category = trace::Category::gradient;
        known = Known::inferred;
      }
      std::size_t s = step_of(steps, columns.birth[i]);
      if (s < steps.size()) {
        std::uint64_t turn = backward(s, kind, columns.birth[i]), death = columns.death[i];
        // Where the recording ends inside a step, what is live there counts as if the step had gone on. A block may also come
        // back a few steps later: eager tapes wait for Python's garbage collector.
        bool cut_short = columns.death[i] == kNone32 && steps[s].end >= columns.ref.size();
        bool inside = cut_short || (columns.death[i] != kNone32 && death < steps[s].end);
        bool comes_back = inside || (layer != 0 && columns.death[i] != kNone32 && death < last_step_end);
        bool before = columns.birth[i] < turn;
        bool lives_on = before && turn != kNever && death > turn;
        bool cut_off = cut[s] != kNever && columns.birth[i] < cut[s] && death >= cut[s];
        if (stage == Stage::other && turn != kNever) stage = before ? Stage::forward : Stage::backward;
        if (known == Known::unknown && inside && is_unnamed(draft, kind, true)) {
          // On a GPU every op of TensorFlow's own names its blocks; an executable of XLA does not.
          known = Known::inferred;
          category = trace::Category::xla_temporary;
        } else if (known == Known::unknown && cut_off && !lives_on) {
          // What a layer made in the forward pass would have lived on for the backward pass; of the rest nothing is known.
          if (stage == Stage::forward && layer != 0) known = Known::inferred, category = trace::Category::activation;
        } else if (known == Known::unknown && comes_back) {
          known = Known::inferred;
          category = lives_on ? trace::Category::activation : trace::Category::temporary;
        }
      }
      // PyTorch: what runs without gradients between the steps keeps nothing for them.
      if (known == Known::unknown && s == steps.size() && stage == Stage::evaluate && columns.death[i] != kNone32) {
        known = Known::inferred;
        category = trace::Category::temporary;
      }
      const bool stays = columns.death[i] == kNone32 || columns.death[i] >= last_step_end;
      if (stays && layer != 0 && is_blas_workspace(draft, kind)) {
        category = trace::Category::workspace;
        known = Known::inferred;
      }
      // What the optimizer computes and is still there in the next backward pass is its state: the variable took over the block.
      if (!slots_told && stage == Stage::optimizer && category == trace::Category::temporary && s < steps.size() &&
          is_tensorflow(draft, kind)) {
        std::uint64_t next = s + 1 < steps.size() ? backward(s + 1, kind, steps[s + 1].begin) : steps[s].end;
        if (columns.death[i] == kNone32 || columns.death[i] > next) {
          category = trace::Category::optimizer_state;
          known = Known::inferred;
        }
      }
      if (known == Known::unknown && pipeline.made(kind, columns.note[i])) {
        category = trace::Category::input;
        known = Known::inferred;
      }
      if (layer == 0 && is_tensorflow(draft, kind)) layer = group_of(category, known_stage);
      columns.note[i] = Note::of(layer, category, known, stage).bits;
    }
  });

  Attribution out;
  const TaggedBlocks told = resolve_tags(draft, out.unmatched);
  for (auto [alloc, tag] : told) {
    Note old{columns.note[alloc]};
    std::string_view layer = draft.text(tag->row.layer);
    std::uint32_t where = layer.empty() ? old.layer() : names.id(layer);
    if (where == 0 && tag->row.category == trace::Category::input) where = pipeline_name;
    columns.note[alloc] = Note::of(where, tag->row.category, Known::told, old.stage()).bits;
    out.tagged.push_back({alloc, static_cast<std::uint32_t>(tag->row.name)});
  }
  out.variable_of_kind = follow_variables(draft, columns, told, names);
  return out;
}

}  // namespace vramscope::analyze
