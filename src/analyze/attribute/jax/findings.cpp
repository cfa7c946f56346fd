#include "analyze/attribute/jax/findings.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/query/filter_text.h"
#include "analyze/verdict/newest_reports.h"
#include "support/units.h"

namespace vramscope::analyze::jax {
namespace {

using support::format_size;

// "params opt_state" -> donate_argnames=("params", "opt_state")
std::string donate_argnames(std::string_view names) {
  std::string out;
  std::size_t count = 0;
  for (; !names.empty(); ++count) {
    const std::size_t end = std::min(names.find(' '), names.size());
    out += fmt::format("{}\"{}\"", count > 0 ? ", " : "", names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return count == 0   ? "donate_argnums"
         : count == 1 ? fmt::format("donate_argnames={}", out)
                      : fmt::format("donate_argnames=({})", out);
}

Finding not_donated(const Store& store, const trace::StateNotDonated& row) {
  return {
      "state-not-donated",
      fmt::format("{} at {} holds its state twice: {} is not donated.", store.text(row.function), reported_line(store, row),
                  format_size(row.bytes)),
      "XLA writes results over an argument only if it is donated; otherwise the old and the new state exist at the same time. "
      "Temporaries may take a part of what is saved: they can no longer use the memory of results.",
      fmt::format("Pass {} to jax.jit, and use only the returned state afterwards.", donate_argnames(store.text(row.arguments))),
      row.bytes,
      "peak",
      "steady",
      "category:parameters or category:optimizer_state"};
}

Finding failed(const Store& store, const trace::DonationFailed& row) {
  return {"donation-failed",
          fmt::format("{} at {} cannot reuse {} that is donated to it: {}.", store.text(row.function), reported_line(store, row),
                      format_size(row.bytes), store.text(row.arguments)),
          fmt::format("{}.", store.text(row.reason)),
          "Return it with the same shape and type, or do not donate it.",
          row.bytes,
          "peak",
          "steady",
          ""};
}

std::string remedy_for_copies(trace::Category category) {
  if (category == trace::Category::input)
    return "Shard the batch over the devices: jax.device_put(batch, NamedSharding(mesh, PartitionSpec(axis))).";
  return "Shard it over the devices: jax.device_put(tree, NamedSharding(mesh, PartitionSpec(axis))), or in_shardings and "
         "out_shardings of jax.jit.";
}

Finding replicated(const Store& store, const trace::ReplicatedArguments& row) {
  const std::string what(name_of(shown(row.category)));
  const Bytes saving = row.copies > 1 ? row.bytes - row.bytes / row.copies : 0;
  return {fmt::format("replicated-{}", row.category == trace::Category::input ? "inputs" : "state"),
          fmt::format("{} of {} is replicated: {} devices hold the same {}.", format_size(row.bytes), what, row.copies,
                      row.sharded > 0 ? fmt::format("bytes, beside {} that is sharded", format_size(row.sharded)) : "bytes"),
          fmt::format("The sharding of {} of {} (compiled at {}) divides it among fewer devices than there are.",
                      store.text(row.arguments), store.text(row.function), reported_line(store, row)),
          remedy_for_copies(row.category),
          saving,
          "peak",
          "steady",
          fmt::format("category:{}", filter_word(what))};
}

}  // namespace

std::vector<Finding> findings(const Store& store) {
  std::vector<Finding> out;
  for (const auto& row : newest_reports<trace::StateNotDonated>(store)) out.push_back(not_donated(store, row));
  for (const auto& row : newest_reports<trace::DonationFailed>(store)) out.push_back(failed(store, row));
  for (const auto& row : newest_reports<trace::ReplicatedArguments>(store)) out.push_back(replicated(store, row));
  return out;
}

}  // namespace vramscope::analyze::jax
