#include "analyze/whatif/shapes.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyze/attribute/categories.h"

namespace vramscope::analyze {
namespace {

bool grows_with_batch(Shown category) {
  switch (category) {
    case Shown::inputs:
    case Shown::activations:
    case Shown::activation_gradients:
    case Shown::temporaries:
    case Shown::xla_temporaries:
    case Shown::workspace:
    case Shown::unknown:
      return true;
    default:
      return false;
  }
}

// Parameters, their gradients and the optimizer's state have the size of the model, even if a dimension happens to be the batch.
bool belongs_to_model(Shown category) {
  return category == Shown::parameters || category == Shown::buffers || category == Shown::optimizer_state ||
         category == Shown::gradients || category == Shown::constants;
}

using Dimensions = std::vector<std::uint64_t>;

Dimensions sorted(Dimensions dims) {
  std::ranges::sort(dims);
  return dims;
}

// Shapes of what belongs to the model, in any order of dimensions: what an optimizer makes on its way has them too.
std::set<Dimensions> shapes_of_model(const Store& store, const RecordedPool& recorded) {
  std::set<Dimensions> out;
  for (const std::uint32_t alloc : recorded.allocs)
    if (belongs_to_model(shown(store.attributes_of(alloc).category())))
      out.insert(sorted(dimensions(store.text(store.site_of(store.kind_of(alloc)).shape))));
  return out;
}

whatif::Scaling scaling_of(const ShapedRequest& request, std::uint64_t batch, const std::set<Dimensions>& of_model) {
  const auto& [bytes, category, shape] = request;
  const double size = static_cast<double>(bytes), per_unit = size / static_cast<double>(batch);
  if (belongs_to_model(category)) return {size, 0, false};
  const Dimensions dims = dimensions(shape);
  if (dims.empty()) {
    if (!shape.empty() || bytes < 1024) return {size, 0, false};  // a scalar
    return grows_with_batch(category) ? whatif::Scaling{0, per_unit, true} : whatif::Scaling{size, 0, true};
  }
  const bool of_layer = category == Shown::inputs || category == Shown::activations || category == Shown::activation_gradients;
  if (of_layer && dims.front() == batch) return {0, per_unit, false};
  const bool contains_batch = std::ranges::find(dims, batch) != dims.end();
  if (of_model.contains(sorted(dims))) return {size, 0, contains_batch};
  if (contains_batch) return {0, per_unit, false};
  // Flattened together with another dimension, as for attention.
  if (batch > 1 && dims.front() % batch == 0) return {0, per_unit, category != Shown::activations};
  return {size, 0, of_layer};
}

}  // namespace

std::vector<std::uint64_t> dimensions(std::string_view shape) {
  std::vector<std::uint64_t> out;
  bool inside = false;
  const std::size_t open = shape.find('[');
  for (const char c : open == std::string_view::npos ? shape : shape.substr(open)) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) out.push_back(0);
    if (digit)
      out.back() = std::min<std::uint64_t>(out.back() * 10 + static_cast<std::uint64_t>(c - '0'), std::uint64_t{1} << 48);
    inside = digit;
  }
  return out;
}

namespace {

template <typename Predicate>
std::optional<std::uint64_t> batch_of_blocks(const Store& store, const RecordedPool& recorded, const Predicate& counts) {
  for (const Shown wanted : {Shown::inputs, Shown::activations}) {
    std::map<std::uint64_t, Bytes> votes;
    for (std::size_t block = 0; block < recorded.allocs.size(); ++block) {
      const std::uint32_t alloc = recorded.allocs[block];
      if (!counts(block) || shown(store.attributes_of(alloc).category()) != wanted) continue;
      const Kind& kind = store.kind_of(alloc);
      const auto dims = dimensions(store.text(store.site_of(kind).shape));
      if (dims.size() > 1 && dims.front() > 0) votes[dims.front()] += kind.granted;
    }
    const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    if (most != votes.end()) return most->first;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> batch_from_shapes(const Store& store, const RecordedPool& recorded) {
  const bool has_steps = !store.steps.empty();
  return batch_of_blocks(store, recorded, [&](std::size_t block) { return recorded.sections[block] != 0 || !has_steps; });
}

std::optional<std::uint64_t> batch_from_shapes(const Store& store, const RecordedPool& recorded, Moment since, Moment until) {
  return batch_of_blocks(store, recorded, [&](std::size_t block) {
    const std::uint64_t birth = store.birth[recorded.allocs[block]];
    return birth >= since && birth < until;
  });
}

std::vector<whatif::Scaling> scalings_by_shape(const Store& store, const RecordedPool& recorded, std::uint64_t batch) {
  const std::set<Dimensions> of_model = shapes_of_model(store, recorded);
  std::vector<whatif::Scaling> out(recorded.allocs.size());
  for (const whatif::Event& event : recorded.events) {
    if (event.what != whatif::What::alloc) continue;
    const std::uint32_t alloc = recorded.allocs[event.block];
    // Without steps, what was made before them is not known.
    if (recorded.sections[event.block] == 0 && !store.steps.empty())
      out[event.block] = {static_cast<double>(event.bytes), 0, false};
    else
      out[event.block] = scaling_of(
          {event.bytes, shown(store.attributes_of(alloc).category()), store.text(store.site_of(store.kind_of(alloc)).shape)},
          batch, of_model);
  }
  return out;
}

whatif::Scaling scaling_by_shape(const Store& store, const RecordedPool& recorded, std::uint64_t batch,
                                 const ShapedRequest& request) {
  return scaling_of(request, batch, shapes_of_model(store, recorded));
}

}  // namespace vramscope::analyze
