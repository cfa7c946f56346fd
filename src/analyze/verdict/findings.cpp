// Sentences with a number, a cause and a remedy; headline.h decides which of them are shown and in which order. The bytes that a
// remedy saves are given only where arithmetic on the recorded state gives them.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analyze/attribute/attribute.h"
#include "analyze/attribute/python_side.h"
#include "analyze/framework.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"
#include "analyze/verdict/counterfactual.h"
#include "analyze/verdict/empty_regions.h"
#include "analyze/verdict/ending.h"
#include "analyze/verdict/findings_reported.h"
#include "analyze/verdict/float64_blocks.h"
#include "analyze/verdict/headline.h"
#include "analyze/verdict/keeper.h"
#include "analyze/verdict/kept_arrays.h"
#include "analyze/verdict/leak_text.h"
#include "analyze/verdict/live_sums.h"
#include "analyze/verdict/peak_rise.h"
#include "analyze/verdict/recent_requests.h"
#include "analyze/verdict/remedies.h"
#include "analyze/verdict/survivors.h"
#include "support/sentence.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::as_sentence;
using support::format_size;

class Finder {
 public:
  Finder(const Engine& engine, const Engine::State& state, const Place& place)
      : engine_(engine),
        s_(state),
        place_(place),
        pools_(state.pools(place)),
        need_at_(place.steady ? place.steady_peak_at : place.peak_at),
        framework_(framework_of(state.store, place)) {}

  Findings all() {
    out_of_memory();
    pool_took_the_card();
    empty();
    first_step();
    leak();
    unusable();
    live_when_needed();
    reported();
    lost();
    out_.findings = ranked(std::move(out_.findings), ending_of(s_), place_.peak);
    return std::move(out_);
  }

 private:
  void add(Finding finding) {
    finding.remedy = as_sentence(finding.remedy);
    out_.findings.push_back(std::move(finding));
  }
  void fine(std::string clause) { out_.also_checked.push_back(std::move(clause)); }

  void out_of_memory() {
    Ooms ooms = engine_.ooms();
    if (ooms.events.empty()) return fine("no out-of-memory error");
    const OomEvent& e = ooms.events.back();
    oom_verdict_ = e.verdict;
    std::string causes;
    for (const OomCause& c : e.causes)
      if (c.holds) causes += fmt::format("{}{}: {}", causes.empty() ? "" : "; ", c.cause, c.evidence);
    std::string line = line_of_last_oom();
    causes = as_sentence(causes);
    add({"oom",
         fmt::format("Out of memory{}: a request for {}{} did not fit.", e.step > 0 ? fmt::format(" in step {}", e.step) : "",
                     format_size(e.requested), line.empty() ? "" : " at " + line),
         causes, ooms.advice, e.short_by > 0 ? std::optional(e.short_by) : std::nullopt, "oom", "oom", ""});
  }

  std::string line_of_last_oom() const {
    std::string line;
    const auto& sites = s_.store.dictionaries().sites;
    for (const auto& oom : s_.store.ooms)
      if (auto site = static_cast<std::size_t>(oom.row.site); oom.row.final && site < sites.size())
        line = line_of(s_.store, sites[site]);
    return line;
  }

  void pool_took_the_card() {
    if (place_.device < 0) return;  // a pool of host memory takes no card
    Bytes card = 0;
    for (const auto& d : s_.store.device_samples)
      if (d.row.device == place_.device) card = d.row.total;
    Bytes full = card != 0 ? card : place_.limit;
    if (place_.regions_end > 2 * place_.peak && full != 0 && place_.regions_end * 2 > full) {
      took_ = true;
      add({"pool-took-card",
           fmt::format("The pool holds {}, the model needs {}.", format_size(place_.regions_end), format_size(place_.peak)),
           std::string(framework(framework_).why_pool_took_card),
           std::string(remedy_for(Remedy::return_cached_memory, framework_)), place_.regions_end - place_.peak, "ledger", "end",
           ""});
    } else if (full != 0) {
      fine("the pool did not take the card");
    }
  }

  void empty() {
    if (place_.regions_end == 0 || took_ || place_.device < 0) return;  // on the host, nobody else needs them
    std::vector<Region> regions = empty_regions(s_, place_);
    Bytes sum = 0;
    std::int64_t since = 0;
    for (const Region& r : regions) {
      sum += r.bytes;
      since = std::max(since, r.empty_since_step);
    }
    if (!is_useful(sum, place_.peak)) return fine("no empty pool region");
    add({"empty-regions",
         since > 0 ? fmt::format("{} of the pool has been empty since step {}.", format_size(sum), since)
                   : fmt::format("{} of the pool is empty.", format_size(sum)),
         fmt::format("{} allocated for requests that never came again, and the pool does not return regions.",
                     support::format_plural(regions.size(), "region was", "regions were")),
         std::string(remedy_for(Remedy::return_empty_regions, framework_)), sum, "map", "end", ""});
  }

  void first_step() {
    if (!place_.steady) return;
    const std::optional<PeakRise> rise = peak_rise(s_, place_);
    if (!rise) return fine("the peak is in the steady steps");
    using Cause = PeakRise::Cause;
    if (rise->cause == Cause::later || rise->cause == Cause::failed || rise->cause == Cause::chance) return;
    const bool trains = s_.store.name(s_.store.steps[s_.steady.first].kind) == "train";
    const std::string training = trains ? "training" : "the steady steps";
    Finding out{"peak-is-start", "", "", "", rise->above, "peak", "peak", ""};
    if (rise->cause == Cause::evaluation) {
      out.id = "peak-is-evaluation";
      out.title = fmt::format("The peak is in an evaluation, not in {}: {}, against {} in the steady steps.", training,
                              format_size(place_.peak), format_size(place_.steady_peak));
      out.cause = "The evaluation processes more data at once than a training step.";
      out.remedy = "Evaluate with smaller batches.";
      out.where = "phase:evaluate";
    } else if (rise->cause == Cause::autotuning) {
      out.id = "peak-is-autotuning";
      out.title = fmt::format("The peak is autotuning, not the model: {} {}, {} in every later step.", format_size(place_.peak),
                              rise->when, format_size(place_.steady_peak));
      out.cause = fmt::format("{} of it is autotuning workspace.", format_size(rise->scratch));
      out.remedy = remedy_for(Remedy::limit_autotuning, framework_);
      out.where = "category:workspace or category:temporaries";
    } else {
      out.title = fmt::format("The peak is in the warm-up, not in {}: {} {}, {} later.", training, format_size(place_.peak),
                              rise->when, format_size(place_.steady_peak));
      out.cause = only_at_peak(s_.store, pools_, place_);
      out.remedy = s_.step_number(place_.peak_at) > 0 ? "Make that step as small as the later ones."
                   : trains                           ? "Free what only the warm-up needs before training starts."
                                                      : "Free what only the warm-up needs before the first step.";
    }
    add(std::move(out));
  }

  void leak() {
    const Leaks leaks = engine_.leaks().value_or(Leaks{});
    const bool growing = leaks.verdict == "growing";
    if (growing && !growth_matters(leaks, place_.peak))
      return fine(fmt::format("growth of only {} per step", format_size(static_cast<Bytes>(leaks.bytes_per_step))));
    if (leaks.verdict == "not growing")
      fine(fmt::format("no growth over {}", support::format_plural(leaks.left_after.size(), "step", "steps")));
    const std::vector<Keeper> all = keepers(s_, leaks.rows);
    const Keeper* const main = growing ? main_keeper(s_.store, all, leaks.rows) : nullptr;
    if (main != nullptr)
      add(held_tensors(*main, leaks.sentence, leaks.advice, leaks.so_far));
    else if (growing)
      add(growth(leaks));
    history_grows_ = growing && only_optimizer_grows(leaks);
    const std::string remedy(remedy_for(Remedy::keep_a_number, framework_));
    for (const Keeper& keeper : all)
      if (&keeper != main && may_leak(keeper, leaks))
        add(held_tensors(
            keeper,
            fmt::format("Leak: {} keeps tensors from every step, {} so far.", in_words(keeper), format_size(keeper.bytes)),
            remedy, keeper.bytes));
  }

  static Finding growth(const Leaks& leaks) {
    const LeakRow& row = leaks.rows[0];
    if (only_optimizer_grows(leaks))
      return {"optimizer-history",
              leaks.sentence,
              "The optimizer keeps values of earlier steps.",
              leaks.advice,
              leaks.so_far,
              "leaks",
              "end",
              "category:optimizer_state"};
    const std::string cause = row.replaced
                                  ? fmt::format("{} allocates a larger block in each step.", row.op)
                                  : fmt::format("{}{} {} never freed.", support::format_plural(row.blocks, "block", "blocks"),
                                                row.op.empty() ? "" : " of " + row.op, row.blocks == 1 ? "was" : "were");
    return {"leak",       leaks.sentence, cause, leaks.advice,
            leaks.so_far, "leaks",        "end", row.line.empty() ? "" : "line:" + row.line};
  }

  // Python sees that a container grows for a few steps. The blocks show whether it continues.
  bool may_leak(const Keeper& keeper, const Leaks& leaks) const {
    if (leaks.verdict == "not growing") return s_.places.size() > 1;
    if (leaks.verdict != "growing" || keeper.origins.empty()) return true;
    return std::ranges::any_of(leaks.rows, [&](const LeakRow& row) {
      return !row.examples.empty() &&
             std::ranges::find(keeper.origins, origin_key(s_.store, row.examples[0])) != keeper.origins.end();
    });
  }

  void unusable() {
    if (place_.regions_peak == 0) return;
    auto frag = engine_.fragmentation();
    if (!frag) return;
    // It matters where it made the pool grow or a request fail. Holes that no request stumbled over cost nothing.
    // A request that failed for another reason finds holes as well.
    const bool failed = !fragmented_failures(s_, place_).empty() && oom_verdict_ == "fragmentation";
    const bool grew = !frag->grown.empty() && place_.device >= 0;  // on the host, a larger pool takes nothing from anybody
    if (!grew && !failed) return fine("no significant fragmentation");
    Bytes stake = 0;
    for (const Grown& g : frag->grown) stake = std::max(stake, g.grew_by);
    Finding f{"fragmentation", frag->sentence, "", frag->advice, {}, "map", fmt::format("moment:{}", frag->worst.at), ""};
    if (!frag->pins.empty())
      f.cause = fmt::format("{} keeps {} apart.", frag->pins[0].block.op, format_size(frag->pins[0].frees));
    if (stake > 0) f.at_stake = stake;
    add(std::move(f));
  }

  // What the Python side saw.
  void reported() {
    for (const Framework* framework : frameworks())
      if (framework->findings != nullptr)
        for (Finding& finding : framework->findings(s_.store)) add(std::move(finding));
    for (Finding& finding : reported_findings(s_.store, measured_)) add(std::move(finding));
  }

  void lost() {
    const std::uint64_t lost = s_.figures.lost_events;
    if (lost == 0) return;
    add({"lost-events",
         fmt::format("{} lost.", support::format_plural(lost, "event was", "events were")),
         "A block whose free was lost looks live until its address is reused: figures are upper bounds.",
         "Record again with a larger --spool-limit, or on a disk with more free space.",
         {},
         "timeline",
         "end",
         ""});
  }

  // What is live when the most is needed.
  void live_when_needed() {
    const Float64Blocks wide(s_.store);
    const LiveSums sums = live_sums(s_.store, pools_, wide, need_at_, kUseful);
    measured_.float64 = sums.float64;
    if (sums.float64 > 0)
      measured_.float64_saving = saving_without(
          sums.float64 / 2, [&](std::uint64_t alloc, Bytes bytes) { return wide.contains(alloc) ? bytes - bytes / 2 : bytes; });
    // Only where the types of most blocks are known: PyTorch's allocator does not tell them.
    if (sums.float64 == 0 && sums.of_known_type * 2 > place_need()) fine("no float64");
    optimizer_state(sums);
    activations(sums);
    layout_copies(sums);
    const Bytes arrays = arrays_on_device();
    if (sums.kept_inputs > arrays) inputs_on_device(sums);
    xla(sums);
    const Bytes unknown = sums.of(Shown::unknown), all = place_need();
    const bool watched = unwatched_frameworks([&](std::string_view key) { return setting(s_.store, key); }).empty();
    if (watched && all > 0 && unknown * 10 <= all)
      fine(fmt::format("category known for {:.0f} %", 100.0 - 100.0 * static_cast<double>(unknown) / static_cast<double>(all)));
  }

  void optimizer_state(const LiveSums& sums) {
    const Bytes state = sums.of(Shown::optimizer_state) - sums.kept_by_any;
    if (state <= sums.trained || sums.trained == 0 || history_grows_) return;  // of unknown parameters there is no rate
    if (sums.values_kept <= sums.values_trained) return;                       // the allocator's part is not the optimizer's
    // In values: what the allocator added to a slot, another block may get instead.
    const double saved =
        1 - std::min(1.0, static_cast<double>(sums.values_trained) / static_cast<double>(std::max<Bytes>(sums.values_kept, 1)));
    add({"optimizer-state",
         fmt::format("The optimizer holds {} for {} of parameters.", format_size(state), format_size(sums.trained)),
         fmt::format("It keeps {:.1f} values per parameter{}.",
                     static_cast<double>(sums.values_kept) / static_cast<double>(std::max<Bytes>(sums.values_trained, 1)),
                     sums.kept_by_any == 0 ? ""
                                           : fmt::format(", not counting {} of summed gradients or averaged weights, which any "
                                                         "optimizer keeps",
                                                         format_size(sums.kept_by_any))),
         "Use Lion or SGD with momentum (one value per parameter), or plain SGD (none).",
         saving_without(state - sums.trained,
                        [&](std::uint64_t alloc, Bytes bytes) {
                          const bool slot = shown(s_.store.attributes_of(alloc).category()) == Shown::optimizer_state &&
                                            !is_kept_by_any_optimizer(s_.store, alloc);
                          const Bytes values = std::min(bytes, s_.store.kind_of(alloc).requested);
                          return slot ? bytes - static_cast<Bytes>(static_cast<double>(values) * saved) : bytes;
                        }),
         "peak", need_word(), "category:optimizer_state"});
  }

  void activations(const LiveSums& sums) {
    const Bytes bytes = sums.of(Shown::activations);
    if (!place_.steady || bytes * 2 <= place_.steady_peak || !is_useful(bytes, place_.peak)) return;
    add({"checkpointing",
         fmt::format("{} of the steady peak is activations kept for the backward pass.", format_size(bytes)),
         "That is more than half of what is live.",
         fmt::format("Recompute them ({}), or use a smaller batch; the saving depends on which layers.",
                     remedy_for(Remedy::recompute_activations, framework_)),
         {},
         "layers",
         need_word(),
         "category:activations"});
  }

  void layout_copies(const LiveSums& sums) {
    if (sums.layout_copies == 0) return;
    add({"layout-copies", fmt::format("{} at the peak is copies in another layout.", format_size(sums.layout_copies)),
         "The graph converts NHWC to NCHW around some ops.", std::string(remedy_for(Remedy::avoid_layout_copies, framework_)),
         saving_without(
             sums.layout_copies,
             [&](std::uint64_t alloc, Bytes bytes) { return is_layout_copy(s_.store, s_.store.kind_of(alloc)) ? 0 : bytes; }),
         "peak", need_word(), fmt::format("op:*{}*", sums.layout_copy_ops)});
  }

  // Each with the line that makes it; the sum.
  Bytes arrays_on_device() {
    Bytes sum = 0;
    if (!s_.steady.has) return sum;
    for (const KeptArray& array : kept_arrays(s_.store, pools_, need_at_, s_.steady.from)) {
      sum += array.bytes;
      add(kept_array_finding(array, place_, need_word()));
    }
    return sum;
  }

  void inputs_on_device(const LiveSums& sums) {
    if (sums.kept_inputs == 0 || place_.device < 0) return;
    add({"inputs-on-device",
         fmt::format("{} of input data stays on the device for the whole training run.", format_size(sums.kept_inputs)),
         sums.input_line.empty() ? "Allocated before the first step." : fmt::format("Allocated at {}.", sums.input_line),
         std::string(remedy_for(Remedy::keep_data_on_host, framework_)), sums.kept_inputs, "peak", need_word(),
         "category:inputs or category:constants"});
  }

  void xla(const LiveSums& sums) {
    const Bytes bytes = sums.of(Shown::xla_temporaries);
    if (!is_useful(bytes, place_.peak) || bytes * 10 < place_need()) return;
    add({"xla",
         fmt::format("{} of the peak ({:.0f} %) is XLA temporaries, one block per executable.", format_size(bytes),
                     100.0 * static_cast<double>(bytes) / static_cast<double>(place_need())),
         "XLA plans the contents of that block itself; no allocator sees them.",
         "Record with 'vramscope run --xla'; 'vramscope xla' then shows what fills it.",
         {},
         "peak",
         need_word(),
         "category:xla_temporaries"});
  }

  // Computed by walking the trace without the bytes; `live` is what is live of them, for traces that are too long.
  Bytes saving_without(Bytes live, const KeptBytes& kept) const { return saving_if(s_, place_, kept).value_or(live); }

  Bytes place_need() const { return place_.steady ? place_.steady_peak : place_.peak; }
  const char* need_word() const { return place_.steady ? "steady" : "peak"; }

  const Engine& engine_;
  const Engine::State& s_;
  const Place& place_;
  PoolSet pools_;
  Moment need_at_;
  trace::Framework framework_;
  bool took_ = false, history_grows_ = false;
  std::string oom_verdict_;  // of the last failure
  Measured measured_;
  Findings out_;
};

}  // namespace

Findings Engine::findings() const {
  auto place = state_->place(-1);
  if (!place) return {};
  return Finder(*this, *state_, **place).all();
}

}  // namespace vramscope::analyze
