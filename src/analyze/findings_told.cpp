#include "analyze/findings_told.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analyze/told.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_plural;
using support::format_size;

constexpr Bytes kWorthwhile = 1u << 20;  // smaller constants are no finding
constexpr std::uint64_t kManyTraces = 5;

Finding held_tensors(const ToldFact& fact, Bytes leaked) {
  Bytes bytes = std::max<Bytes>(fact.number("bytes"), leaked);
  return {"held-tensors",
          fmt::format("Leak: {} keeps tensors of every step, {} so far; it grows at {}.", fact.text("name"), format_size(bytes),
                      fact.line()),
          fmt::format("A {} of {} held {} when it was last looked at.", fact.text("container"), fact.text("owner"),
                      format_plural(fact.number("count"), "tensor", "tensors")),
          "Keep a number instead (float(x), x.numpy()), or empty it now and then.",
          bytes,
          "leaks",
          "end",
          ""};
}

Finding persistent_tape(const ToldFact& fact) {
  return {"persistent-tape",
          fmt::format("The persistent tape at {} keeps its activations until it is deleted.", fact.line()),
          "A persistent GradientTape frees nothing by itself: it was still alive when the next step began.",
          "del tape as soon as the last gradient is taken, or make it not persistent.",
          {},
          "peak",
          "steady",
          "category:activations"};
}

Finding retrace(const ToldFact& fact) {
  return {"retrace",
          fmt::format("{} at {} was traced {} times; every trace keeps its graph.", fact.text("function"), fact.line(),
                      fact.text("traces")),
          fact.text("reason"),
          "Pass tensors instead of Python values, make the function once, or set reduce_retracing=True.",
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
          fmt::format("{} of constants are baked into a graph at {}{}.", format_size(baked.bytes), line, copies),
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
          fmt::format("{} at the peak are float64; they come from {}.", format_size(bytes), line),
          "Every one of these tensors takes twice the bytes of float32.",
          "Cast to float32 there.",
          bytes / 2,
          "peak",
          "steady",
          "dtype:float64"};
}

Finding dataset_on_device(const ToldFact& fact) {
  return {
      "dataset-on-device",
      fmt::format("The dataset made at {} keeps {} on {}.", fact.line(), format_size(fact.number("bytes")), fact.text("device")),
      "Its source is a tensor there, and stays as long as the dataset.",
      "Give it NumPy arrays or read files: then only the batches in use are on the device.",
      fact.number("bytes"),
      "peak",
      "steady",
      "category:inputs"};
}

Finding cached_dataset(const ToldFact& fact) {
  return {"cached-dataset",
          fmt::format("The dataset cached at {} holds {} of host memory.", fact.line(), format_size(fact.number("bytes"))),
          fmt::format("cache() keeps all {} elements after the first pass.", fact.text("elements")),
          "cache(filename) keeps them on the disk.",
          fact.number("bytes"),
          "ledger",
          "end",
          "category:inputs"};
}

}  // namespace

std::vector<Finding> told_findings(const Store& store, const Measured& measured) {
  auto facts = [&](std::string_view kind) { return told_facts(store, kind); };
  std::vector<Finding> out;
  const std::vector<ToldFact> held = facts("held_tensors");
  for (const ToldFact& fact : held) out.push_back(held_tensors(fact, held.size() == 1 ? measured.leaked : 0));
  for (const ToldFact& fact : facts("persistent_tape")) out.push_back(persistent_tape(fact));
  for (const ToldFact& fact : facts("retrace"))
    if (fact.number("traces") >= kManyTraces) out.push_back(retrace(fact));

  std::map<std::string, Baked> baked;  // by line
  for (const ToldFact& fact : facts("baked_constant")) {
    Baked& here = baked[fact.line()];
    here.bytes += fact.number("bytes");
    here.copies = std::max<std::uint64_t>(here.copies, fact.number("copies"));
    here.op = fact.text("op");
  }
  for (const auto& [line, here] : baked)
    if (here.bytes >= kWorthwhile) out.push_back(baked_constants(line, here));

  const std::vector<ToldFact> wide = facts("float64");
  if (auto first = std::ranges::max_element(wide, {}, [](const ToldFact& f) { return f.number("bytes"); }); first != wide.end())
    out.push_back(float64(measured, first->line(), first->number("bytes")));
  else if (measured.float64 >= kWorthwhile)
    out.push_back(float64(measured, measured.wide_line.empty() ? "an op without a line" : measured.wide_line, 0));
  for (const ToldFact& fact : facts("dataset_on_device")) out.push_back(dataset_on_device(fact));
  for (const ToldFact& fact : facts("cached_dataset")) out.push_back(cached_dataset(fact));
  return out;
}

}  // namespace vramscope::analyze
