// Which batch size fits on a device.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/steps/usual.h"
#include "analyze/whatif/batches.h"
#include "analyze/whatif/candidates.h"
#include "analyze/whatif/cards.h"
#include "analyze/whatif/device_room.h"
#include "analyze/whatif/forecaster.h"
#include "analyze/whatif/shapes.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_count;
using support::format_size;

// Steps that do the same differ in their peaks if ops or input batches overlap by chance: as a share of the highest.
double spread_of_steps(const Engine& engine, int place) {
  const Steps steps = engine.steps(place);
  Bytes least = whatif::kUnlimited, most = 0;
  for (const std::size_t i : steady_steps(steps)) {
    if (steps.steps[i].allocated == 0) continue;
    least = std::min(least, steps.steps[i].peak);
    most = std::max(most, steps.steps[i].peak);
  }
  return most == 0 ? 0 : static_cast<double>(most - least) / static_cast<double>(most);
}

struct Inputs {
  std::vector<RecordedPool> recorded;  // by batch
  std::vector<const Engine*> runs;
  std::vector<std::uint64_t> batches;
  std::vector<std::string> names;
  bool by_length = false;  // batches are sequence lengths
};

// In sentences.
std::string_view unit_of(const FitRequest& request) { return request.seq != 0 ? "sequence length" : "batch"; }

Result<Inputs> inputs_of(std::span<const Engine* const> runs, std::span<const std::string> names, const FitRequest& request) {
  std::vector<RecordedPool> recorded;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto one = recorded_pool(runs[i]->state(), {.place = request.place, .where = request.where});
    if (!one) return fail(names[i] + ": " + one.error().message);
    recorded.push_back(std::move(*one));
  }
  std::vector<std::uint64_t> batches = request.batches;
  if (batches.empty()) {
    auto found = batches_of(runs, recorded, names, request.seq != 0 ? Unit::length : Unit::batch);
    if (!found) return std::unexpected(found.error());
    batches = std::move(*found);
  }
  if (batches.size() != runs.size())
    return fail(fmt::format("--batches names {} for {}", support::format_plural(batches.size(), "batch size", "batch sizes"),
                            support::format_plural(runs.size(), "recording", "recordings")));
  if (request.seq != 0 && runs.size() < 3)
    return fail("--seq needs recordings at three sequence lengths: stored attention grows with the square of the length");
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return batches[i]; });
  Inputs out;
  out.by_length = request.seq != 0;
  for (const std::size_t i : order) {
    if (!out.batches.empty() && out.batches.back() == batches[i])
      return fail(fmt::format("{} and {} have the same {}, {}; record the program at another one", out.names.back(), names[i],
                              out.by_length ? "sequence length" : "batch size", batches[i]));
    out.recorded.push_back(std::move(recorded[i]));
    out.runs.push_back(runs[i]);
    out.batches.push_back(batches[i]);
    out.names.push_back(names[i]);
  }
  return out;
}

// By block of the largest recording; from the two largest ones (three for lengths), or from shapes if there is only one.
std::vector<whatif::Scaling> scalings_of(const Inputs& inputs) {
  const std::size_t last = inputs.runs.size() - 1;
  const Store& store = inputs.runs[last]->state().store;
  if (last == 0) return scalings_by_shape(store, inputs.recorded[0], inputs.batches[0]);
  const auto large = requests_of(store, inputs.recorded[last]);
  const auto batch = [&](std::size_t i) { return static_cast<double>(inputs.batches[i]); };
  const auto small = requests_of(inputs.runs[last - 1]->state().store, inputs.recorded[last - 1]);
  const auto smallest = inputs.by_length ? requests_of(inputs.runs[last - 2]->state().store, inputs.recorded[last - 2]) : small;
  const auto found = inputs.by_length
                         ? whatif::scalings({smallest, batch(last - 2)}, {small, batch(last - 1)}, {large, batch(last)})
                         : whatif::scalings({small, batch(last - 1)}, {large, batch(last)});
  std::vector<whatif::Scaling> out(inputs.recorded[last].allocs.size());
  for (std::size_t i = 0; i < large.size(); ++i) out[large[i].block] = found[i];
  return out;
}

// A forecast of what does not grow would name any batch. The peak may be where small batches do not matter, so a huge one
// decides.
Status grows(const Inputs& inputs, const Forecaster& forecaster) {
  if (forecaster.live_peak(Forecaster::kLargestBatch).bytes > forecaster.live_peak(inputs.batches.back()).bytes) return {};
  const std::string_view unit = inputs.by_length ? "sequence length" : "batch";
  if (inputs.runs.size() == 1)
    return fail(
        fmt::format("{}: no block grows with the {}; record the program at another one, too", inputs.names.front(), unit));
  return fail(
      fmt::format("nothing grows from {} {} ({}) to {} ({}); if those are not their {}, set them with --batches; otherwise "
                  "record the program at another {}",
                  unit, inputs.batches.front(), inputs.names.front(), inputs.batches.back(), inputs.names.back(),
                  inputs.by_length ? "sequence lengths" : "batch sizes", inputs.by_length ? "sequence length" : "batch size"));
}

Result<std::vector<FitCard>> cards_for(const FitRequest& request, const RecordedPool& recorded, Bytes outside) {
  if (request.limit != 0)
    return std::vector<FitCard>{{"the pool", request.limit, request.limit - std::min(request.limit, outside), 0}};
  const auto with_room = [&](std::string_view name, Bytes memory) {
    return FitCard{std::string(name), memory, memory - std::min(memory, outside + left_free(recorded, memory)), 0};
  };
  std::vector<FitCard> out;
  if (request.on.empty()) {
    for (const Card& card : cards()) out.push_back(with_room(card.name, card.memory));
    return out;
  }
  const auto card = card_from(request.on);
  if (!card) return std::unexpected(card.error());
  out.push_back(with_room(card->name, card->memory));
  return out;
}

std::vector<std::pair<std::string, Bytes>> categories_of(const LivePeak& peak) {
  std::vector<std::pair<std::string, Bytes>> out;
  for (std::size_t i = 0; i < kShown; ++i)
    if (peak.by_category[i] != 0) out.emplace_back(std::string(name_of(static_cast<Shown>(i))), peak.by_category[i]);
  std::ranges::stable_sort(out, std::ranges::greater{}, [](const auto& one) { return one.second; });
  return out;
}

// How to get to a larger batch, given what takes the most.
std::string_view way_to_double(std::string_view category) {
  if (category == name_of(Shown::optimizer_state)) return "an optimizer with less state leaves room for a larger one";
  if (category == name_of(Shown::parameters) || category == name_of(Shown::gradients))
    return "a larger one needs a smaller model or more memory";
  return "accumulate gradients over 2 batches to double it";
}

std::string sentence_of(const Fit& fit, const FitRequest& request, Bytes held_as_recorded, const Forecaster& forecaster) {
  const FitCard& card = fit.cards.front();
  const std::uint64_t wanted = request.seq != 0 ? request.seq : request.batch;
  const std::string_view unit = unit_of(request), named = request.seq != 0 ? "Sequence length" : "Batch";
  const std::string where = request.limit != 0 ? fmt::format("a pool of {}", format_size(card.memory)) : card.name;
  if (request.limit == 0 && request.on.empty()) {
    std::size_t usable = 0;
    for (const FitCard& one : fit.cards) usable += one.largest >= std::max<std::uint64_t>(wanted, 1) ? 1u : 0u;
    return fmt::format("{} fits on {} of {} cards.",
                       wanted != 0 ? fmt::format("{} {}", named, format_count(wanted)) : "The program", usable, fit.cards.size());
  }
  std::string out;
  if (request.outside > held_as_recorded)
    out = fmt::format("The context, libraries and other programs hold {} of {}. ", format_size(request.outside), where);
  const auto row_at = [&](std::uint64_t batch) { return std::ranges::find(fit.rows, batch, &FitRow::batch); };
  if (wanted != 0 && wanted > card.largest) {
    const Bytes needed = row_at(wanted)->smallest.value_or(row_at(wanted)->live);
    if (needed > card.available)
      out += fmt::format("{} {} does not fit on {}: it needs about {}, and {} is available. ", named, format_count(wanted), where,
                         format_size(needed), format_size(card.available));
    else
      out += fmt::format("{} {} may fail on {}: {} is enough only for some orders of addresses. ", named, format_count(wanted),
                         where, format_size(needed));
  } else if (wanted != 0) {
    out += fmt::format("{} {} fits on {}. ", named, format_count(wanted), where);
  }
  if (card.largest == 0)
    return out +
           fmt::format("No {} fits on {}: {} is live even for one.", unit, where, format_size(forecaster.live_peak(1).bytes));
  const auto row = row_at(card.largest);
  out += fmt::format("The largest {} for {} is {}: {} of live blocks, ±{}.", unit, where, format_count(card.largest),
                     format_size(row->live), support::format_percent(fit.error));
  if (!fit.binding.empty() && request.seq != 0)
    out += fmt::format(" {} of it is {}.", format_size(fit.binding.front().second), fit.binding.front().first);
  else if (!fit.binding.empty())
    out += fmt::format(" {} of it is {}; {}.", format_size(fit.binding.front().second), fit.binding.front().first,
                       way_to_double(fit.binding.front().first));
  return out;
}

std::vector<std::string> assumptions_of(const RecordedPool& recorded, bool lacks_context, bool single) {
  std::vector<std::string> out = recorded.assumptions;
  if (recorded.before > 0)
    out.push_back(fmt::format("{} was in use when the recording started, and stays in use.", format_size(recorded.before)));
  if (recorded.on_host && lacks_context) out.emplace_back(kContextIsNotCounted);
  if (single)
    out.emplace_back(
        "From one recording: blocks whose shape contains the batch size grow with it. A second recording at another batch size "
        "is more exact.");
  return out;
}

// In ascending order, each once; 0 is none.
std::vector<std::uint64_t> batches_to_show(std::uint64_t recorded, const FitRequest& request, std::uint64_t largest) {
  std::vector<std::uint64_t> out{recorded, request.seq != 0 ? request.seq : request.batch, largest};
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  std::erase(out, 0);
  return out;
}

}  // namespace

Status check_device(const FitRequest& request) {
  if (request.limit != 0 && request.outside != 0)
    return fail("--outside: does not apply to --limit, which is the size of the pool itself; name the device with --on");
  if (request.limit != 0 && !request.on.empty())
    return fail("--limit: replaces the device of --on, as it is the size of the pool itself; use one of them");
  if (request.on.empty()) return {};
  const auto card = card_from(request.on);
  return card ? Status{} : std::unexpected(card.error());
}

Result<Fit> fit(std::span<const Engine* const> runs, std::span<const std::string> names, const FitRequest& request) {
  if (const Status valid = check_device(request); !valid) return std::unexpected(valid.error());
  if (request.seq != 0 && request.batch != 0)
    return fail("--batch: does not apply to --seq, which forecasts a sequence length; choose one of them");
  auto inputs = inputs_of(runs, names, request);
  if (!inputs) return std::unexpected(inputs.error());
  std::uint64_t events = 0;
  for (const RecordedPool& one : inputs->recorded) events += one.events.size();
  whatif::Work work(events);
  for (RecordedPool& one : inputs->recorded) one.scenario.device.work = &work;
  const RecordedPool& recorded = inputs->recorded.back();
  const Engine& engine = *inputs->runs.back();
  auto wanted = candidate(recorded, request.allocator);
  if (!wanted) return std::unexpected(wanted.error());
  // PyTorch's own limit counts whole segments, even where only pages are missing.
  if (request.limit != 0) wanted->scenario.torch.limit = request.limit;
  const bool single = inputs->runs.size() == 1;
  const double of_recordings = single ? kErrorOfShapes : kLeastError;
  const double least_error =
      std::max({of_recordings, error_of_order(engine.state().store, recorded), spread_of_steps(engine, request.place)});
  const Forecaster forecaster(engine.state().store, recorded, scalings_of(*inputs), wanted->scenario, {.least = least_error});

  Fit out;
  out.unit = unit_of(request);
  for (std::size_t i = 0; i < inputs->runs.size(); ++i)
    out.runs.push_back({inputs->names[i], inputs->batches[i],
                        whatif::replay(inputs->recorded[i].events, inputs->recorded[i].scenario, whatif::OnFailure::go_on)
                            .counters.allocated_peak});
  const Bytes held_as_recorded = request.limit != 0 ? 0 : outside_of(engine, recorded, request.place);
  out.outside = recorded.before + std::max(held_as_recorded, request.outside);
  auto asked = cards_for(request, recorded, out.outside);
  if (!asked) return std::unexpected(asked.error());
  out.cards = std::move(*asked);
  if (out.cards.size() == 1) out.outside = out.cards.front().memory - out.cards.front().available;
  for (FitCard& card : out.cards) card.largest = forecaster.largest_batch(card.available);

  const bool one_card = request.limit != 0 || !request.on.empty();
  const std::vector<std::uint64_t> shown_batches =
      batches_to_show(inputs->batches.back(), request, one_card ? out.cards.front().largest : 0);
  for (const std::uint64_t batch : shown_batches) {
    FitRow& row = out.rows.emplace_back(forecaster.row(batch));
    if (!one_card) continue;
    const auto trial = forecaster.trial(batch, out.cards.front().available);
    row.fits = trial.fits;
    row.flushes = trial.flushes;
  }
  if (work.exhausted()) return one_card ? too_much_work() : too_much_work("name one device with --on");
  if (const Status growing = grows(*inputs, forecaster); !growing) return std::unexpected(growing.error());
  // The sentence is about the largest that fits; without one, about the largest that was asked for.
  const LivePeak peak =
      forecaster.live_peak(one_card && out.cards.front().largest != 0 ? out.cards.front().largest : shown_batches.back());
  out.binding = categories_of(peak);
  out.uncertain = peak.uncertain;
  out.error = forecaster.error(peak);
  out.assumptions = assumptions_of(recorded, request.limit == 0 && request.outside == 0, single);
  out.sentence = sentence_of(out, request, held_as_recorded, forecaster);
  return out;
}

}  // namespace vramscope::analyze
