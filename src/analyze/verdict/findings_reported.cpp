#include "analyze/verdict/findings_reported.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/host_reports.h"
#include "analyze/verdict/float64_entry.h"
#include "analyze/verdict/newest_reports.h"
#include "analyze/verdict/tape_cost.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::uint64_t kManyTraces = 5;
constexpr Bytes kWorthSaying = Bytes{1} << 20;  // of host memory, beside something else

Finding persistent_tape(const std::string& line, Bytes kept) {
  Finding out;
  out.id = "persistent-tape";
  out.title = kept > 0 ? fmt::format("The persistent tape at {} keeps {} until it is deleted.", line, format_size(kept))
                       : fmt::format("The persistent tape at {} keeps its activations until it is deleted.", line);
  out.cause = "A persistent GradientTape frees nothing by itself: it was still alive when the next step began.";
  out.remedy = "Delete the tape (del tape) after the last gradient, or drop persistent=True.";
  if (kept > 0) out.at_stake = kept;
  out.view = "peak";
  out.at = "steady";
  out.where = "category:activations";
  return out;
}

// What happens to a function that is called with new kinds of arguments, and what to do about it.
struct RetraceWords {
  std::string_view what, remedy;
};
constexpr RetraceWords kTraced{"was traced {} times; each trace keeps its graph",
                               "Pass tensors instead of Python values, create the function once, or set reduce_retracing=True."};
constexpr RetraceWords kCompiled{"was compiled {} times; each executable stays in memory",
                                 "Pad batches to one shape, pass values that change as arrays instead of static arguments, and "
                                 "call jax.jit once per function."};

bool is_jax_alone(const Store& store) {
  const auto has = [&](std::string_view key) {
    return std::ranges::find(store.settings, key, &SettingText::key) != store.settings.end();
  };
  return has("jax.version") && !has("tensorflow.version");
}

// What the graphs of one line added to host memory; 0 if they added nothing.
Bytes added_at(const std::vector<HostGraph>& graphs, const std::string& line) {
  std::int64_t sum = 0;
  for (const HostGraph& graph : graphs)
    if (graph.line == line) sum = std::max(sum, graph.bytes);
  return static_cast<Bytes>(sum);
}

Finding retrace(const Store& store, const trace::Retrace& retraced, Bytes added) {
  const RetraceWords& words = is_jax_alone(store) ? kCompiled : kTraced;
  const std::string_view reason = store.text(retraced.reason);
  return {"retrace",
          fmt::format("{} at {} {}.", store.text(retraced.function), reported_line(store, retraced),
                      fmt::format(fmt::runtime(words.what), retraced.traces)),
          added >= kWorthSaying ? fmt::format("{}; its graphs added {} of host memory.", reason, format_size(added))
                                : std::string(reason),
          std::string(words.remedy),
          {},
          "steps",
          "peak",
          ""};
}

struct Baked {
  Bytes bytes = 0;  // of one copy of each
  std::uint64_t copies = 1;
  std::string op;
};

Finding baked_constants(const std::string& line, const Baked& baked) {
  // Only graphs that run have their copy on the device, and it is not known which do.
  std::string copies = baked.copies > 1 ? fmt::format(", in each of {} graphs", baked.copies) : "";
  return {"baked-constant",
          fmt::format("{} of constants is baked into a graph at {}{}.", format_size(baked.bytes), line, copies),
          fmt::format("An array was used inside a tf.function and became its op {}: a copy in the graph and one on the device.",
                      baked.op),
          "Pass it as an argument, keep it in a tf.Variable, or read it with tf.data.",
          baked.bytes,
          "peak",
          "steady",
          "category:constants"};
}

Finding float64(const Measured& measured, const std::string& line, Bytes variable) {
  Bytes bytes = std::max(measured.float64, variable);
  return {"float64",
          fmt::format("{} at the peak is float64; it enters at {}.", format_size(bytes), line),
          "Each of these tensors takes twice the bytes of float32.",
          "Cast to float32 there.",
          measured.float64 >= variable ? measured.float64_saving : bytes / 2,
          "peak",
          "steady",
          "dtype:float64"};
}

Finding dataset_on_device(const Store& store, const trace::DatasetOnDevice& dataset) {
  return {"dataset-on-device",
          fmt::format("The dataset made at {} keeps {} on {}.", reported_line(store, dataset), format_size(dataset.bytes),
                      store.text(dataset.device)),
          "Its source is a tensor on that device and lives as long as the dataset.",
          "Build it from NumPy arrays or files, so that only the batches in use are on the device.",
          dataset.bytes,
          "peak",
          "steady",
          "category:inputs"};
}

Finding cached_dataset(const Store& store, const trace::CachedDataset& cached) {
  return {
      "cached-dataset",
      fmt::format("The dataset cached at {} takes {} of host memory.", reported_line(store, cached), format_size(cached.bytes)),
      fmt::format("cache() keeps all {} elements after the first pass.", cached.elements),
      "Use cache(filename) to keep them on disk.",
      cached.bytes,
      "ledger",
      "end",
      "category:inputs"};
}

}  // namespace

std::vector<Finding> reported_findings(const Store& store, const Measured& measured) {
  std::vector<Finding> out;
  const std::map<std::string, Bytes> kept = kept_by_tapes(store);
  for (const auto& tape : newest_reports<trace::PersistentTape>(store)) {
    const std::string line = reported_line(store, tape);
    const auto cost = kept.find(line);
    out.push_back(persistent_tape(line, cost == kept.end() ? 0 : cost->second));
  }
  const std::vector<HostGraph> graphs = built_graphs(store);
  for (const auto& retraced : newest_reports<trace::Retrace>(store))
    if (retraced.traces >= kManyTraces) out.push_back(retrace(store, retraced, added_at(graphs, reported_line(store, retraced))));

  std::map<std::string, Baked> baked;  // by line
  for (const auto& constant : newest_reports<trace::BakedConstant>(store)) {
    Baked& here = baked[reported_line(store, constant)];
    here.bytes += constant.bytes;
    here.copies = std::max(here.copies, constant.copies);
    here.op = store.text(constant.op);
  }
  for (const auto& [line, here] : baked) out.push_back(baked_constants(line, here));

  if (const Bytes variable = widest_variable(store); variable > 0 || measured.float64 > 0) {
    const std::string line = float64_entry(store);
    out.push_back(float64(measured, line.empty() ? "an op without a line" : line, variable));
  }
  for (const auto& dataset : newest_reports<trace::DatasetOnDevice>(store)) out.push_back(dataset_on_device(store, dataset));
  for (const auto& cached : newest_reports<trace::CachedDataset>(store)) out.push_back(cached_dataset(store, cached));
  return out;
}

}  // namespace vramscope::analyze
