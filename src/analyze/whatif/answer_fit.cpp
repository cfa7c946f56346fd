// Which batch size fits on a device.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analyze/framework.h"
#include "analyze/query/driver_level.h"
#include "analyze/whatif/batches.h"
#include "analyze/whatif/candidates.h"
#include "analyze/whatif/cards.h"
#include "analyze/whatif/forecaster.h"
#include "analyze/whatif/shapes.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_count;
using support::format_size;

constexpr double kErrorOfTwo = 0.005;  // from two recordings
constexpr double kErrorOfOne = 0.05;   // from one

// Of the live peak: how far it depends on the order in which ops happened to run.
double error_of_order(const Store& store, const RecordedPool& recorded) {
  if (!has_traced_graph(store)) return 0;
  const Framework& of = framework(recorded.framework);
  return recorded.on_host ? of.order_error_on_host : of.order_error_on_gpu;
}

// Everything on the device that is not in the pool.
Bytes outside_of(const Engine& engine, const RecordedPool& recorded, int place_index) {
  const Engine::State& state = engine.state();
  const auto place = state.place(place_index);
  if (!place || recorded.on_host) return 0;
  Bytes out = 0;
  for (const auto& context : state.store.contexts)
    if (context.row.device == (*place)->device) out += context.row.bytes;
  const DriverLevel driver =
      driver_level(state, (*place)->device, regions_at(state.store, **place, (*place)->peak_at), (*place)->peak_at);
  for (const auto& [owner, bytes] : driver.owners)
    if (owner != framework(recorded.framework).pool_owner) out += bytes;
  return out;
}

Bytes left_free(const RecordedPool& recorded, Bytes card) {
  const auto left = framework(recorded.framework).left_free;
  return left == nullptr || recorded.on_host ? 0 : left(card);
}

// Steps that do the same differ in their peaks if ops or input batches overlap by chance: as a share of the highest.
double spread_of_steps(const Engine& engine, int place) {
  const Steps steps = engine.steps(place);
  if (!steps.has_steady) return 0;
  Bytes least = whatif::kUnlimited, most = 0;
  for (std::size_t i = steps.steady_first; i <= steps.steady_last && i < steps.steps.size(); ++i) {
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
};

Result<Inputs> inputs_of(std::span<const Engine* const> runs, std::span<const std::string> names, const FitRequest& request) {
  std::vector<RecordedPool> recorded;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto one = recorded_pool(runs[i]->state(), request.place, request.where);
    if (!one) return fail(names[i] + ": " + one.error().message);
    recorded.push_back(std::move(*one));
  }
  std::vector<std::uint64_t> batches = request.batches;
  if (batches.empty()) {
    auto found = batches_of(runs, recorded, names);
    if (!found) return std::unexpected(found.error());
    batches = std::move(*found);
  }
  if (batches.size() != runs.size())
    return fail(fmt::format("--batches names {} for {}", support::format_plural(batches.size(), "batch size", "batch sizes"),
                            support::format_plural(runs.size(), "recording", "recordings")));
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return batches[i]; });
  Inputs out;
  for (const std::size_t i : order) {
    if (!out.batches.empty() && out.batches.back() == batches[i])
      return fail(fmt::format("{} and {} have the same batch size, {}; record the program at another one", out.names.back(),
                              names[i], batches[i]));
    out.recorded.push_back(std::move(recorded[i]));
    out.runs.push_back(runs[i]);
    out.batches.push_back(batches[i]);
    out.names.push_back(names[i]);
  }
  return out;
}

// By block of the largest recording; from the two largest ones, or from shapes if there is only one.
std::vector<whatif::Scaling> scalings_of(const Inputs& inputs) {
  const std::size_t last = inputs.runs.size() - 1;
  const Store& store = inputs.runs[last]->state().store;
  if (last == 0) return scalings_by_shape(store, inputs.recorded[0], inputs.batches[0]);
  const auto large = requests_of(store, inputs.recorded[last]);
  const auto small = requests_of(inputs.runs[last - 1]->state().store, inputs.recorded[last - 1]);
  const auto found = whatif::scalings({small, static_cast<double>(inputs.batches[last - 1])},
                                      {large, static_cast<double>(inputs.batches[last])});
  std::vector<whatif::Scaling> out(inputs.recorded[last].allocs.size());
  for (std::size_t i = 0; i < large.size(); ++i) out[large[i].block] = found[i];
  return out;
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
  if (category == "optimizer state") return "an optimizer with less state leaves room for a larger one";
  if (category == "parameters" || category == "gradients") return "a larger one needs a smaller model or more memory";
  return "accumulate gradients over 2 batches to double it";
}

std::string sentence_of(const Fit& fit, const FitRequest& request, const Forecaster& forecaster) {
  const FitCard& card = fit.cards.front();
  const std::string where = request.limit != 0 ? fmt::format("a pool of {}", format_size(card.memory)) : card.name;
  if (request.limit == 0 && request.on.empty()) {
    std::size_t usable = 0;
    for (const FitCard& one : fit.cards) usable += one.largest >= std::max<std::uint64_t>(request.batch, 1) ? 1u : 0u;
    return fmt::format("{} fits on {} of {} cards.",
                       request.batch != 0 ? fmt::format("Batch {}", format_count(request.batch)) : "The program", usable,
                       fit.cards.size());
  }
  const auto row_at = [&](std::uint64_t batch) { return std::ranges::find(fit.rows, batch, &FitRow::batch); };
  std::string out;
  if (request.batch != 0 && request.batch > card.largest) {
    const Bytes needed = row_at(request.batch)->smallest.value_or(row_at(request.batch)->live);
    if (needed > card.available)
      out = fmt::format("Batch {} does not fit on {}: it needs about {}, and {} is available. ", format_count(request.batch),
                        where, format_size(needed), format_size(card.available));
    else
      out = fmt::format("Batch {} may fail on {}: {} is enough only for some orders of addresses. ", format_count(request.batch),
                        where, format_size(needed));
  } else if (request.batch != 0) {
    out = fmt::format("Batch {} fits on {}. ", format_count(request.batch), where);
  }
  if (card.largest == 0)
    return out + fmt::format("No batch fits on {}: {} is live even for one.", where, format_size(forecaster.live_peak(1).bytes));
  const auto row = row_at(card.largest);
  out += fmt::format("The largest batch for {} is {}: {} of live blocks, ±{}.", where, format_count(card.largest),
                     format_size(row->live), support::format_percent(fit.error));
  if (!fit.binding.empty())
    out += fmt::format(" {} of it is {}; {}.", format_size(fit.binding.front().second), fit.binding.front().first,
                       way_to_double(fit.binding.front().first));
  return out;
}

std::vector<std::string> assumptions_of(const RecordedPool& recorded, bool for_device, bool single) {
  std::vector<std::string> out = recorded.assumptions;
  if (recorded.before > 0)
    out.push_back(fmt::format("{} was in use when the recording started, and stays in use.", format_size(recorded.before)));
  if (recorded.on_host && for_device)
    out.emplace_back("On a GPU, the context and the libraries need memory too: about 0.5 GiB, which is not counted here.");
  if (single)
    out.emplace_back(
        "From one recording: blocks whose shape contains the batch size grow with it. A second recording at another batch size "
        "is more exact.");
  return out;
}

}  // namespace

Result<Fit> fit(std::span<const Engine* const> runs, std::span<const std::string> names, const FitRequest& request) {
  auto inputs = inputs_of(runs, names, request);
  if (!inputs) return std::unexpected(inputs.error());
  std::uint64_t events = 0;
  for (const RecordedPool& one : inputs->recorded) events += one.events.size();
  whatif::Work work(events);
  for (RecordedPool& one : inputs->recorded) one.scenario.device.work = &work;
  const RecordedPool& recorded = inputs->recorded.back();
  const Engine& engine = *inputs->runs.back();
  const auto wanted = candidate(recorded, request.allocator);
  if (!wanted) return std::unexpected(wanted.error());
  const bool single = inputs->runs.size() == 1;
  const double of_recordings = single ? kErrorOfOne : kErrorOfTwo;
  const double least_error =
      std::max({of_recordings, error_of_order(engine.state().store, recorded), spread_of_steps(engine, request.place)});
  const Forecaster forecaster(engine.state().store, recorded, scalings_of(*inputs), wanted->scenario, least_error);

  Fit out;
  for (std::size_t i = 0; i < inputs->runs.size(); ++i)
    out.runs.push_back({inputs->names[i], inputs->batches[i],
                        whatif::replay(inputs->recorded[i].events, inputs->recorded[i].scenario, whatif::OnFailure::go_on)
                            .counters.allocated_peak});
  out.outside = recorded.before + (request.limit != 0 ? 0 : outside_of(engine, recorded, request.place));
  auto asked = cards_for(request, recorded, out.outside);
  if (!asked) return std::unexpected(asked.error());
  out.cards = std::move(*asked);
  if (out.cards.size() == 1) out.outside = out.cards.front().memory - out.cards.front().available;
  for (FitCard& card : out.cards) card.largest = forecaster.largest_batch(card.available);

  const bool one_card = request.limit != 0 || !request.on.empty();
  std::vector<std::uint64_t> shown_batches{inputs->batches.back()};
  if (request.batch != 0) shown_batches.push_back(request.batch);
  if (one_card && out.cards.front().largest != 0) shown_batches.push_back(out.cards.front().largest);
  std::ranges::sort(shown_batches);
  shown_batches.erase(std::ranges::unique(shown_batches).begin(), shown_batches.end());
  for (const std::uint64_t batch : shown_batches) {
    FitRow& row = out.rows.emplace_back(forecaster.row(batch));
    if (!one_card) continue;
    const auto trial = forecaster.trial(batch, out.cards.front().available);
    row.fits = trial.fits;
    row.flushes = trial.flushes;
  }
  if (work.exhausted()) return too_much_work(one_card ? "choose fewer blocks with --where" : "name one device with --on");
  // The sentence is about the largest that fits; without one, about the largest that was asked for.
  const LivePeak peak =
      forecaster.live_peak(one_card && out.cards.front().largest != 0 ? out.cards.front().largest : shown_batches.back());
  out.binding = categories_of(peak);
  out.uncertain = peak.uncertain;
  out.error = forecaster.error(peak);
  out.assumptions = assumptions_of(recorded, request.limit == 0, single);
  out.sentence = sentence_of(out, request, forecaster);
  return out;
}

}  // namespace vramscope::analyze
