#include "analyze/whatif/device_room.h"

#include "analyze/framework.h"
#include "analyze/query/driver_level.h"

namespace vramscope::analyze {

double error_of_order(const Store& store, const RecordedPool& recorded) {
  if (!has_traced_graph(store)) return 0;
  const Framework& of = framework(recorded.framework);
  return recorded.on_host ? of.order_error_on_host : of.order_error_on_gpu;
}

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

}  // namespace vramscope::analyze
