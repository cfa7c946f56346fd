// Up to five sentences with a number, a cause and a remedy, ranked by the bytes that the remedy saves. The bytes are given only
// where arithmetic on the recorded state gives them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analyze/attribute.h"
#include "analyze/autotune.h"
#include "analyze/categories.h"
#include "analyze/empty_regions.h"
#include "analyze/facts.h"
#include "analyze/findings_told.h"
#include "analyze/lifetime.h"
#include "analyze/recent.h"
#include "analyze/state.h"
#include "analyze/step_measure.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::size_t kMost = 5;
constexpr Bytes kWorthwhile = 1u << 20;  // smaller sums are no finding

class Finder {
 public:
  Finder(const Engine& engine, const Engine::State& state, const Place& place)
      : engine_(engine),
        s_(state),
        place_(place),
        pools_(state.pools(place)),
        need_at_(place.steady ? place.steady_peak_at : place.peak_at) {}

  Findings all() {
    out_of_memory();
    pool_took_the_card();
    empty();
    first_step();
    leak();
    unusable();
    sums();
    told();
    std::ranges::stable_sort(out_.findings, [&](const Finding& a, const Finding& b) {
      return std::pair(rank(a), a.at_stake.value_or(0)) > std::pair(rank(b), b.at_stake.value_or(0));
    });
    if (out_.findings.size() > kMost) out_.findings.resize(kMost);
    return std::move(out_);
  }

 private:
  void add(Finding finding) { out_.findings.push_back(std::move(finding)); }
  void fine(std::string clause) { out_.also_checked.push_back(std::move(clause)); }

  void out_of_memory() {
    Ooms ooms = engine_.ooms();
    if (ooms.events.empty()) return fine("Never out of memory");
    const OomEvent& e = ooms.events.back();
    std::string causes;
    for (const OomCause& c : e.causes)
      if (c.holds) causes += fmt::format("{}{}: {}", causes.empty() ? "" : "; ", c.cause, c.evidence);
    std::string line = line_of_last_oom();
    add({"oom",
         fmt::format("Out of memory: {} were asked for{} and did not fit.", format_size(e.requested),
                     line.empty() ? "" : " at " + line),
         causes, ooms.advice, e.short_by, "oom", "oom", ""});
  }

  std::string line_of_last_oom() const {
    std::string line;
    const auto& sites = s_.store.words().sites;
    for (const auto& oom : s_.store.ooms)
      if (auto site = static_cast<std::size_t>(oom.row.site); oom.row.final && site < sites.size())
        line = line_of(s_.store.words(), sites[site]);
    return line;
  }

  void pool_took_the_card() {
    Bytes card = 0;
    for (const auto& d : s_.store.device_samples)
      if (d.row.device == place_.device) card = d.row.total;
    Bytes full = card != 0 ? card : place_.limit;
    if (place_.regions_end > 2 * place_.peak && full != 0 && place_.regions_end * 2 > full) {
      took_ = true;
      add({"pool-took-card",
           fmt::format("The pool holds {}, the model needs {}.", format_size(place_.regions_end), format_size(place_.peak)),
           "Memory growth is off, so the pool took the card at the first tensor.",
           "tf.config.experimental.set_memory_growth(gpu, True), or a limit of your own.", place_.regions_end - place_.peak,
           "ledger", "end", ""});
    } else if (full != 0) {
      fine("The pool did not take the card");
    }
  }

  void empty() {
    if (place_.regions_end == 0 || took_) return;
    std::vector<Region> regions = empty_regions(s_, place_);
    Bytes sum = 0;
    std::int64_t since = 0;
    for (const Region& r : regions) sum += r.bytes, since = std::max(since, r.empty_since_step);
    if (sum < kWorthwhile) return fine("No region of the pool is empty");
    add({"empty-regions",
         since > 0 ? fmt::format("{} of the pool have been empty since step {}.", format_size(sum), since)
                   : fmt::format("{} of the pool are empty.", format_size(sum)),
         fmt::format("{} taken for requests that did not come back; regions are never given back.",
                     support::format_plural(regions.size(), "region was", "regions were")),
         "Limit what asked for them, or give the pool a limit.", sum, "map", "end", ""});
  }

  void first_step() {
    if (!place_.steady) return;
    if (place_.peak <= place_.steady_peak + place_.steady_peak / 50) return fine("The peak is in the steady steps");
    Bytes above = place_.peak - place_.steady_peak;
    if (in_evaluation(s_.store, place_.peak_at))
      return add({"peak-is-evaluation",
                  fmt::format("The peak is an evaluation, not the training: {}, {} in the steady steps.",
                              format_size(place_.peak), format_size(place_.steady_peak)),
                  "The model runs there on more at once than in training.", "Evaluate with smaller batches.", above, "peak",
                  "peak", "phase:evaluate"});
    std::int64_t step = s_.step_number(place_.peak_at);
    std::string when = step > 0 ? fmt::format("in step {}", step) : "before the first step";
    if (Bytes scratch = autotuning_at_peak(s_.store, pools_, place_); scratch > 0)
      add({"peak-is-autotuning",
           fmt::format("The peak is autotuning, not the model: {} {}, {} in every later step.", format_size(place_.peak), when,
                       format_size(place_.steady_peak)),
           fmt::format("{} of it are scratch for trying algorithms.", format_size(scratch)),
           "TF_CUDNN_WORKSPACE_LIMIT_IN_MB limits what a trial may take.", above, "peak", "peak", "category:temporaries"});
    else
      add({"peak-is-start",
           fmt::format("The peak is the start, not the training: {} {}, {} later.", format_size(place_.peak), when,
                       format_size(place_.steady_peak)),
           "What is live there is gone in the steady steps.", "Free what only the start needs before training.", above, "peak",
           "peak", ""});
  }

  void leak() {
    auto leaks = engine_.leaks();
    if (!leaks || leaks->verdict == "cannot tell") return;
    if (leaks->verdict == "not growing")
      return fine(fmt::format("No growth over {}", support::format_plural(leaks->left_after.size(), "step", "steps")));
    measured_.leaked = leaks->so_far;
    std::string cause;
    if (!leaks->rows.empty() && leaks->rows[0].replaced)
      cause = fmt::format("{} makes a larger block in each step.", leaks->rows[0].op);
    else if (!leaks->rows.empty())
      cause =
          fmt::format("{}{} {} never freed.", support::format_plural(leaks->rows[0].blocks, "block", "blocks"),
                      leaks->rows[0].op.empty() ? "" : " of " + leaks->rows[0].op, leaks->rows[0].blocks == 1 ? "was" : "were");
    add({"leak", leaks->sentence, cause, leaks->advice, leaks->so_far, "leaks", "end",
         leaks->rows.empty() || leaks->rows[0].line.empty() ? "" : "line:" + leaks->rows[0].line});
  }

  void unusable() {
    if (place_.regions_peak == 0) return;
    auto frag = engine_.fragmentation();
    if (!frag) return;
    const bool little = frag->worst.unusable * 10 <= frag->worst.pool || frag->worst.unusable < kWorthwhile;
    if (frag->grown.empty() && little && fragmented_failures(s_, place_).empty()) return fine("No fragmentation to speak of");
    Bytes stake = 0;
    for (const Grown& g : frag->grown) stake = std::max(stake, g.grew_by);
    Finding f{"fragmentation", frag->sentence, "", frag->advice, {}, "map", fmt::format("moment:{}", frag->worst.at), ""};
    if (!frag->pins.empty())
      f.cause = fmt::format("{} keeps {} apart.", frag->pins[0].block.op, format_size(frag->pins[0].frees));
    if (stake > 0) f.at_stake = stake;
    add(std::move(f));
  }

  // What the Python side saw. Faults in the user's code come before everything that is merely large.
  void told() {
    for (Finding& finding : told_findings(s_.store, measured_)) {
      if (finding.id == "held-tensors") std::erase_if(out_.findings, [](const Finding& f) { return f.id == "leak"; });
      if (!finding.id.contains("dataset")) faults_.push_back(finding.id);  // that may be what the user wants
      add(std::move(finding));
    }
  }

  int rank(const Finding& finding) const {
    if (finding.id == "oom") return 2;
    return std::ranges::find(faults_, finding.id) != faults_.end() ? 1 : 0;
  }

  // One look at what is live when the most is needed.
  void sums() {
    const Store& store = s_.store;
    std::vector<Bytes> category(kShown, 0);
    Bytes trained = 0, wide = 0, widest = 0, layout = 0, kept_inputs = 0, slack = 0;
    std::string input_line;
    for_each_live(store, need_at_, [&](std::uint32_t alloc) {
      const Kind& kind = store.kind_of(alloc);
      if (kind.pool >= pools_.size() || pools_[kind.pool] == 0) return;
      Shown c = shown(store.note_of(alloc).category());
      category[static_cast<std::size_t>(c)] += kind.granted;
      if (store.note_of(alloc).category() == trace::Category::parameter) trained += kind.granted;  // no buffers
      slack += kind.granted - std::min(kind.granted, kind.requested);
      const trace::Site& site = store.site_of(kind);
      if (store.words().pools[kind.pool].framework == trace::Framework::tensorflow && site.dtype == 2) {
        wide += kind.granted;
        if (kind.granted > widest && kind.line != 0) widest = kind.granted, measured_.wide_line = store.name(kind.line);
      }
      if (store.text(site.op).find("LayoutOptimizer") != std::string_view::npos) layout += kind.granted;
      bool outside_steps = step_index(store, store.birth[alloc]) < 0;
      if ((c == Shown::inputs || c == Shown::constants) && outside_steps && kind.granted >= kWorthwhile && !store.steps.empty()) {
        kept_inputs += kind.granted;
        if (kind.line != 0) input_line = store.name(kind.line);
      }
    });
    auto sum = [&](Shown c) { return category[static_cast<std::size_t>(c)]; };
    std::string at = place_.steady ? "steady" : "peak";
    const auto& recorded = s_.store.words().pools;
    const bool torch = std::ranges::any_of(
        place_.pools, [&](std::uint32_t pool) { return recorded[pool].framework == trace::Framework::pytorch; });
    measured_.float64 = wide;
    if (wide < kWorthwhile) fine("No float64");
    if (Bytes state = sum(Shown::optimizer_state); state > trained && state >= kWorthwhile)
      add({"optimizer-state",
           fmt::format("The optimizer holds {} for {} of parameters.", format_size(state), format_size(trained)),
           "Adam keeps two values for each parameter.", "Momentum or Lion keep one, SGD none.", state - trained, "peak", at,
           "category:optimizer_state"});
    if (sum(Shown::activations) * 2 > place_.steady_peak && place_.steady && sum(Shown::activations) >= kWorthwhile)
      add({"checkpointing",
           fmt::format("{} of the steady peak are activations kept for the backward pass.", format_size(sum(Shown::activations))),
           "They are more than half of what is live.",
           fmt::format("Recompute them ({}) or use a smaller batch; how much that saves depends on where.",
                       torch ? "torch.utils.checkpoint" : "tf.recompute_grad"),
           {},
           "layers",
           at,
           "category:activations"});
    if (layout >= kWorthwhile)
      add({"layout-copies", fmt::format("{} at the peak are copies into another layout.", format_size(layout)),
           "The graph turns NHWC into NCHW around some ops.", "Try data_format=\"channels_first\".", layout, "peak", at,
           "op:*LayoutOptimizer*"});
    if (kept_inputs >= kWorthwhile && place_.device >= 0)
      add({"inputs-on-device",
           fmt::format("{} of input data lie on the device during the whole training.", format_size(kept_inputs)),
           input_line.empty() ? "They were put there before the first step."
                              : fmt::format("They were put there at {}.", input_line),
           torch ? "Keep the data on the host and move each batch to the device." : "Build the dataset under tf.device(\"CPU\").",
           kept_inputs, "peak", at, "category:inputs or category:constants"});
    Bytes known = place_.steady ? place_.steady_peak : place_.peak;
    if (Bytes xla = sum(Shown::xla_temporaries); xla >= kWorthwhile && xla * 10 >= known)
      add({"xla",
           fmt::format("{} of the peak ({:.0f} %) are temporaries of XLA, one block for each executable.", format_size(xla),
                       100.0 * static_cast<double>(xla) / static_cast<double>(known)),
           "XLA plans the inside of that block itself: no allocator sees it.",
           "Record with 'vramscope run --xla'; 'vramscope xla' then shows what fills it.",
           {},
           "peak",
           at,
           "category:xla_temporaries"});
    if (known > 0 && sum(Shown::unknown) * 10 <= known)
      fine(fmt::format("Category known for {:.0f} %",
                       100.0 - 100.0 * static_cast<double>(sum(Shown::unknown)) / static_cast<double>(known)));
  }

  const Engine& engine_;
  const Engine::State& s_;
  const Place& place_;
  PoolSet pools_;
  Moment need_at_;
  bool took_ = false;
  Measured measured_;
  std::vector<std::string> faults_;  // ids of findings that are faults in the user's code
  Findings out_;
};

}  // namespace

Findings Engine::findings() const {
  auto place = state_->place(-1);
  if (!place) return {};
  return Finder(*this, *state_, **place).all();
}

}  // namespace vramscope::analyze
