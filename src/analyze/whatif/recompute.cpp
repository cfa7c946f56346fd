#include "analyze/whatif/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "analyze/attribute/categories.h"

namespace vramscope::analyze {
namespace {

bool separates(char c) { return c == '.' || c == '/'; }

bool contains(std::string_view unit, std::string_view layer) {
  return layer.starts_with(unit) && (layer.size() == unit.size() || separates(layer[unit.size()]));
}

// "encoder.3.attention.query" belongs to "encoder.3".
std::string_view unit_among_all(std::string_view layer) {
  const auto end_of_word = [&](std::size_t from) {
    return std::min({layer.find('.', from), layer.find('/', from), layer.size()});
  };
  const std::size_t first = end_of_word(0);
  if (first == layer.size()) return layer;
  const std::size_t second = end_of_word(first + 1);
  const auto member = layer.substr(first + 1, second - first - 1);
  const bool of_list = !member.empty() && std::ranges::all_of(member, [](char c) { return c >= '0' && c <= '9'; });
  return layer.substr(0, of_list ? second : first);
}

// The unit that a layer belongs to; empty if it is not recomputed.
std::string_view unit_of(std::string_view layer, std::string_view layers) {
  if (layer.empty() || layer.front() == '(') return {};
  if (layers == "all") return unit_among_all(layer);
  for (std::size_t from = 0; from <= layers.size();) {
    const std::size_t to = std::min(layers.find(',', from), layers.size());
    const std::string_view name = layers.substr(from, to - from);
    if (!name.empty() && contains(name, layer)) return name;
    from = to + 1;
  }
  return {};
}

// One forward pass of a unit, until its backward pass begins.
struct Pass {
  std::vector<std::uint32_t> blocks;
  std::optional<std::size_t> backward;
};

class Recomputation {
 public:
  Recomputation(const Store& store, const RecordedPool& recorded, std::string_view layers, Rewriter& rewriter)
      : store_(store), recorded_(recorded), layers_(layers), rewriter_(rewriter) {}

  Bytes apply() {
    find_consumers();
    for (std::uint32_t block = 0; block < rewriter_.blocks(); ++block) {
      if (recorded_.sections[block] == 0) continue;
      const Attributes attributes = store_.attributes_of(recorded_.allocs[block]);
      const std::string_view unit = unit_of(store_.name(attributes.layer()), layers_);
      if (unit.empty()) continue;
      Pass& pass = passes_[unit];
      if (attributes.stage() == Stage::backward && !pass.blocks.empty() && !pass.backward) pass.backward = rewriter_.born(block);
      if (attributes.stage() != Stage::forward) continue;
      if (pass.backward) finish(pass);
      pass.blocks.push_back(block);
    }
    for (auto& [unit, pass] : passes_) finish(pass);
    return bytes_;
  }

 private:
  // For each block, the next allocation of another layer: what reads the block. One sweep from the end.
  void find_consumers() {
    consumers_.resize(rewriter_.blocks(), recorded_.events.size());
    std::size_t next = recorded_.events.size(), elsewhere = next;
    std::uint32_t layer_of_next = kNone32;
    for (std::uint32_t block = rewriter_.blocks(); block-- > 0;) {
      const std::uint32_t layer = store_.attributes_of(recorded_.allocs[block]).layer();
      if (layer != layer_of_next) elsewhere = next;
      consumers_[block] = elsewhere;
      next = rewriter_.born(block);
      layer_of_next = layer;
    }
  }

  // What leaves the unit is the input of the next one, and stays: the last block that is about as large as the others.
  std::uint32_t output_of(const Pass& pass) const {
    const std::size_t after = rewriter_.born(pass.blocks.back()) + 1;
    Bytes largest = 0;
    std::uint32_t out = kNone32;
    for (const std::uint32_t block : pass.blocks)
      if (rewriter_.lives_at(block, after)) largest = std::max(largest, rewriter_.bytes(block));
    for (const std::uint32_t block : pass.blocks)
      if (rewriter_.lives_at(block, after) && rewriter_.bytes(block) >= largest / 8) out = block;
    return out;
  }

  void finish(Pass& pass) {
    if (pass.backward) {
      const std::uint32_t output = output_of(pass);
      for (const std::uint32_t block : pass.blocks) {
        const std::size_t read = consumers_[block] + 1;
        const Shown category = shown(store_.attributes_of(recorded_.allocs[block]).category());
        if (block == output || category != Shown::activations || read >= *pass.backward || rewriter_.end(block) <= *pass.backward)
          continue;
        rewriter_.suspend(block, read, *pass.backward);
        if (recorded_.sections[block] == 1) bytes_ += rewriter_.bytes(block);
      }
    }
    pass = {};
  }

  const Store& store_;
  const RecordedPool& recorded_;
  std::string_view layers_;
  Rewriter& rewriter_;
  std::map<std::string_view, Pass> passes_;
  std::vector<std::size_t> consumers_;
  Bytes bytes_ = 0;
};

}  // namespace

Bytes recompute_layers(const Store& store, const RecordedPool& recorded, std::string_view layers, Rewriter& rewriter) {
  return Recomputation(store, recorded, layers, rewriter).apply();
}

}  // namespace vramscope::analyze
