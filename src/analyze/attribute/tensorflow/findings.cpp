#include "analyze/attribute/tensorflow/findings.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "analyze/verdict/newest_reports.h"
#include "analyze/verdict/tape_cost.h"
#include "support/units.h"

namespace vramscope::analyze::tensorflow {
namespace {

using support::format_size;

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

std::vector<Finding> findings(const Store& store) {
  std::vector<Finding> out;
  const std::map<std::string, Bytes> kept = kept_by_tapes(store);
  for (const auto& tape : newest_reports<trace::PersistentTape>(store)) {
    const std::string line = reported_line(store, tape);
    const auto cost = kept.find(line);
    out.push_back(persistent_tape(line, cost == kept.end() ? 0 : cost->second));
  }
  std::map<std::string, Baked> baked;  // by line
  for (const auto& constant : newest_reports<trace::BakedConstant>(store)) {
    Baked& here = baked[reported_line(store, constant)];
    here.bytes += constant.bytes;
    here.copies = std::max(here.copies, constant.copies);
    here.op = store.text(constant.op);
  }
  for (const auto& [line, here] : baked) out.push_back(baked_constants(line, here));

  for (const auto& dataset : newest_reports<trace::DatasetOnDevice>(store)) out.push_back(dataset_on_device(store, dataset));
  for (const auto& cached : newest_reports<trace::CachedDataset>(store)) out.push_back(cached_dataset(store, cached));
  return out;
}

}  // namespace vramscope::analyze::tensorflow
