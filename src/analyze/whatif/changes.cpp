#include "analyze/whatif/changes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyze/attribute/categories.h"
#include "analyze/framework.h"
#include "analyze/whatif/recompute.h"
#include "analyze/whatif/rewriter.h"
#include "analyze/whatif/shapes.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

struct Optimizer {
  std::string_view name;
  double states;  // values per parameter, of the parameter's type
  bool factored;  // a row and a column for each matrix instead
  bool exact;     // the state has the layout of the parameters
};
constexpr Optimizer kOptimizers[] = {
    {"sgd", 0, false, true},     {"momentum", 1, false, true},  {"lion", 1, false, true},
    {"rmsprop", 1, false, true}, {"adagrad", 1, false, true},   {"adam", 2, false, true},
    {"adamw", 2, false, true},   {"adafactor", 0, true, false}, {"adam8bit", 0.5, false, false},
};

constexpr std::string_view kPrecisions[] = {"bf16", "fp16"};

// What a change knows about the blocks.
struct Scene {
  const Store& store;
  RecordedPool& recorded;
  Attributes of(std::uint32_t block) const { return store.attributes_of(recorded.allocs[block]); }
  Shown category(std::uint32_t block) const { return shown(of(block).category()); }
  std::uint32_t section(std::uint32_t block) const { return recorded.sections[block]; }
  std::string_view shape(std::uint32_t block) const {
    return store.text(store.site_of(store.kind_of(recorded.allocs[block])).shape);
  }
};

// Parameters that are live when the program has settled.
struct Parameters {
  std::vector<std::uint32_t> blocks;
  Bytes bytes = 0;
};

Parameters parameters_of(const Scene& scene, const Rewriter& rewriter) {
  Parameters out;
  const std::size_t at = rewriter.first_event_of_section(scene.recorded.settled);
  for (std::uint32_t block = 0; block < rewriter.blocks(); ++block) {
    if (scene.category(block) != Shown::parameters || !rewriter.lives_at(block, at)) continue;
    out.blocks.push_back(block);
    out.bytes += rewriter.bytes(block);
  }
  return out;
}

// The optimizer's part of each step, as positions of events.
struct Update {
  std::size_t step = 0;  // where the step begins
  std::size_t begins = 0, ends = 0;
};

std::vector<Update> updates_of(const Scene& scene, const Rewriter& rewriter) {
  std::vector<Update> out;
  for (std::uint32_t block = 0; block < rewriter.blocks(); ++block) {
    const std::uint32_t section = scene.section(block);
    const std::size_t born = rewriter.born(block);
    if (section == 0) continue;
    if (out.size() < section) out.resize(section, {born, born, born});
    Update& update = out[section - 1];
    const bool begun = update.ends > update.begins;
    if (!begun) update.begins = update.ends = born;  // the end of the step so far
    if (scene.of(block).stage() == Stage::optimizer) update.ends = born + 1;
  }
  return out;
}

// For a change that is about them.
Result<Parameters> known_parameters(const Scene& scene, const Rewriter& rewriter) {
  Parameters out = parameters_of(scene, rewriter);
  if (out.blocks.empty()) return fail("the recording does not show which blocks are parameters");
  return out;
}

Bytes factored_state(const Scene& scene, std::uint32_t block, Bytes bytes) {
  const auto dims = dimensions(scene.shape(block));
  if (dims.size() == 1) return bytes;
  const Bytes unused = framework(scene.recorded.framework).keeps_unfactored_state ? bytes : 0;
  if (dims.size() >= 2) return unused + 4 * (dims[dims.size() - 1] + dims[dims.size() - 2]);
  return 8 * static_cast<Bytes>(std::sqrt(static_cast<double>(bytes) / 4));
}

// Peak of the requested bytes.
Bytes peak_of(const RecordedPool& recorded) {
  std::vector<Bytes> bytes(recorded.allocs.size(), 0);
  Bytes now = 0, most = 0;
  for (const whatif::Event& event : recorded.events) {
    if (event.what == whatif::What::alloc) most = std::max(most, now += bytes[event.block] = event.bytes);
    if (event.what == whatif::What::free) now -= bytes[event.block];
  }
  return most;
}

// `of_update`: what may be live during an update. What it computes on its way differs between optimizers and is not known: up to
// two values per parameter were seen.
Result<std::string> change_optimizer(const Scene& scene, std::string_view name, Rewriter& rewriter, Changed& out,
                                     Bytes& of_update) {
  const auto* const optimizer = std::ranges::find(kOptimizers, name, &Optimizer::name);
  if (optimizer == std::end(kOptimizers)) {
    return fail(fmt::format("invalid optimizer \"{}\": expected {}", name, fmt::join(optimizer_names(), ", ")));
  }
  const Result<Parameters> parameters = known_parameters(scene, rewriter);
  if (!parameters) return std::unexpected(parameters.error());
  Bytes before = 0, after = 0;
  const std::size_t settled = rewriter.first_event_of_section(scene.recorded.settled);
  std::size_t at = settled;
  for (std::uint32_t block = 0; block < rewriter.blocks(); ++block) {
    const bool state = scene.category(block) == Shown::optimizer_state;
    if (state && rewriter.lives_at(block, settled)) before += rewriter.bytes(block);
    if (state || scene.of(block).stage() == Stage::optimizer) at = std::min(at, rewriter.born(block));
    // Values that the update computes on its way exist only with a state.
    const bool temporary = scene.of(block).stage() == Stage::optimizer && scene.category(block) != Shown::parameters;
    if (state || (temporary && optimizer->states == 0 && !optimizer->factored)) rewriter.drop(block);
  }
  for (const std::uint32_t block : parameters->blocks) {
    const Bytes bytes = rewriter.bytes(block);
    const auto copies = static_cast<std::uint64_t>(std::max(1.0, std::ceil(optimizer->states)));
    const Bytes each = optimizer->factored ? factored_state(scene, block, bytes)
                                           : static_cast<Bytes>(static_cast<double>(bytes) * optimizer->states) / copies;
    for (std::uint64_t i = 0; each > 0 && i < copies; ++i) rewriter.insert(Shown::optimizer_state, each, at);
    after += each * copies;
  }
  out.confidence = optimizer->exact ? "high" : "low";           // measured: within 1 %
  of_update = 4 * parameters->bytes + std::max(before, after);  // parameters, gradients and what is computed
  return fmt::format("optimizer state: {} instead of {}", format_size(after), format_size(before));
}

// A block of unknown type is treated as one of float32.
bool is_float32(const Scene& scene, std::uint32_t block) {
  const std::uint64_t dtype = scene.store.site_of(scene.store.kind_of(scene.recorded.allocs[block])).dtype;
  const std::span<const std::string_view> names = framework(scene.recorded.framework).dtypes;
  return dtype == 0 || names.empty() || (dtype < names.size() && names[dtype] == "float32");
}

Result<std::string> change_precision(const Scene& scene, std::string_view name, Rewriter& rewriter, Changed& out) {
  if (std::ranges::count(kPrecisions, name) == 0)
    return fail(fmt::format("invalid precision \"{}\": expected {}", name, fmt::join(kPrecisions, " or ")));
  Bytes halved = 0;
  for (std::uint32_t block = 0; block < rewriter.blocks(); ++block) {
    const Shown category = scene.category(block);
    const bool changes = category == Shown::activations || category == Shown::activation_gradients;
    if (!changes || scene.section(block) == 0 || !is_float32(scene, block)) continue;
    rewriter.scale(block, 0.5);
    if (scene.section(block) == 1) halved += rewriter.bytes(block);
  }
  if (halved == 0) return fail("the recording does not show which blocks are activations");
  // The computation uses copies of the parameters with two bytes each, until the backward pass is over.
  const Parameters parameters = parameters_of(scene, rewriter);
  for (const Update& update : updates_of(scene, rewriter))
    for (const std::uint32_t block : parameters.blocks)
      rewriter.insert(Shown::temporaries, std::max<Bytes>(1, rewriter.bytes(block) / 2), update.step, update.begins);
  out.confidence = "low";
  return fmt::format("all activations in {}, which is the best case, plus {} for copies of the parameters", name,
                     format_size(parameters.bytes / 2));
}

Result<std::string> change_accumulation(const Scene& scene, std::uint64_t parts, Rewriter& rewriter, Changed& out) {
  const auto batch = batch_from_shapes(scene.store, scene.recorded);
  if (batch && parts > *batch)
    return fail(
        fmt::format("a batch of {} cannot be split into {} parts", support::format_count(*batch), support::format_count(parts)));
  const auto scalings = scalings_by_shape(scene.store, scene.recorded, batch.value_or(parts));
  for (std::uint32_t block = 0; block < rewriter.blocks(); ++block)
    if (scalings[block].fixed == 0) rewriter.scale(block, 1.0 / static_cast<double>(parts));
  const Result<Parameters> parameters = known_parameters(scene, rewriter);
  if (!parameters) return std::unexpected(parameters.error());
  const bool adds = framework(scene.recorded.framework).adds_to_gradients;
  for (std::uint32_t block = 0; adds && block < rewriter.blocks(); ++block)
    if (scene.category(block) == Shown::gradients) rewriter.shorten(block);
  const std::size_t first = rewriter.first_event_of_section(1);
  for (const std::uint32_t block : parameters->blocks) rewriter.insert(Shown::gradients, rewriter.bytes(block), first);
  // Keras' update averages them into a third set of gradients; in a graph, one by one.
  const bool averages = !adds && !has_traced_graph(scene.store);
  for (const Update& update : averages ? updates_of(scene, rewriter) : std::vector<Update>{})
    for (const std::uint32_t block : parameters->blocks)
      rewriter.insert(Shown::gradients, rewriter.bytes(block), update.begins, update.ends);
  out.confidence = batch ? "high" : "low";  // measured: with shapes within 1.1 %
  return fmt::format("{} parts of each batch, plus {} for accumulated gradients", parts, format_size(parameters->bytes));
}

Result<std::string> change_checkpoint(const Scene& scene, std::string_view layers, Rewriter& rewriter, Changed& out) {
  const Bytes bytes = recompute_layers(scene.store, scene.recorded, layers, rewriter);
  if (bytes == 0)
    return fail(
        fmt::format("no activation of \"{}\" is kept for the backward pass; 'vramscope layers' lists the layers", layers));
  out.confidence = "low";
  return fmt::format("{} of activations per step computed again in the backward pass", format_size(bytes));
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out;
  for (const Optimizer& known : kOptimizers) out.emplace_back(known.name);
  return out;
}

std::vector<std::string> precision_names() { return {std::begin(kPrecisions), std::end(kPrecisions)}; }

Result<Changed> change_requests(const Store& store, const WhatifRequest& request, RecordedPool& recorded) {
  Changed out;
  Rewriter rewriter(recorded);
  const Scene scene{store, recorded};
  std::string weakest;
  const auto add = [&](bool asked, auto change) -> Status {
    if (!asked) return {};
    auto note = change();
    if (!note) return std::unexpected(note.error());
    out.notes.push_back(std::move(*note));
    if (weakest != "low") weakest = out.confidence;
    return {};
  };
  Bytes of_update = 0;
  Status done =
      add(!request.optimizer.empty(), [&] { return change_optimizer(scene, request.optimizer, rewriter, out, of_update); });
  if (done) done = add(!request.precision.empty(), [&] { return change_precision(scene, request.precision, rewriter, out); });
  if (done) done = add(request.accumulate > 1, [&] { return change_accumulation(scene, request.accumulate, rewriter, out); });
  if (done) done = add(!request.checkpoint.empty(), [&] { return change_checkpoint(scene, request.checkpoint, rewriter, out); });
  if (!done) return std::unexpected(done.error());
  if (!out.notes.empty()) rewriter.apply();
  // Measured: up to 52 % off if the update is where most is live.
  if (peak_of(recorded) < of_update) weakest = "low";
  // Measured: up to 29 % off, because the changed program runs its ops in another order.
  out.confidence = weakest.empty() || !has_traced_graph(store) ? weakest : "low";
  return out;
}

}  // namespace vramscope::analyze
