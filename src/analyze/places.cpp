#include "analyze/places.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analyze/lifetime.h"
#include "analyze/parallel.h"
#include "analyze/pyramid.h"

namespace vramscope::analyze {

std::vector<Place> places_of(const trace::Dictionaries& words) {
  // Managed memory and arrays live on the device for this purpose; reserved addresses without memory count nowhere.
  enum Where { kDevice, kPinned, kHost, kAddresses };
  std::map<std::tuple<bool, std::int64_t, int>, Place> found;
  for (std::uint32_t i = 0; i < words.pools.size(); ++i) {
    const trace::Pool& pool = words.pools[i];
    int where = pool.memory == trace::Memory::pinned         ? kPinned
                : pool.memory == trace::Memory::host         ? kHost
                : pool.memory == trace::Memory::virtual_only ? kAddresses
                                                             : kDevice;
    bool driver = pool.level == trace::Level::driver;
    std::int64_t device = where == kDevice || where == kAddresses ? pool.device : -1;
    Place& place = found[{driver, device, where}];
    place.device = device;
    place.driver = driver;
    place.pools.push_back(i);
    if (place.name.empty()) {
      place.name = where == kPinned ? "pinned host" : device < 0 ? "host" : fmt::format("GPU {}", device);
      if (driver) place.name += where == kAddresses ? " reserved addresses" : " driver";
    }
  }
  std::vector<Place> out;
  for (auto& [key, place] : found) out.push_back(std::move(place));
  return out;
}

PoolSet pools_of(const Place& place, std::size_t pools) {
  PoolSet out(pools, 0);
  for (std::uint32_t pool : place.pools)
    if (pool < pools) out[pool] = 1;
  return out;
}

int main_place(const Store& store, const std::vector<Place>& places) {
  std::vector<std::uint64_t> count(store.kinds.size(), 0);
  for (std::size_t i = 0; i < store.kind.size(); ++i)
    if (store.kind[i] < count.size()) ++count[store.kind[i]];
  std::vector<double> bytes(store.words().pools.size(), 0);
  for (std::size_t k = 0; k < count.size(); ++k)
    if (store.kinds[k].pool < bytes.size())
      bytes[store.kinds[k].pool] += static_cast<double>(count[k]) * static_cast<double>(store.kinds[k].granted);
  int best = places.empty() ? -1 : 0;
  std::tuple<bool, bool, double> most{false, false, -1};
  for (std::size_t i = 0; i < places.size(); ++i) {
    double sum = 0;
    for (std::uint32_t pool : places[i].pools) sum += bytes[pool];
    // Tensor level before driver level, device before host, then the most bytes.
    std::tuple<bool, bool, double> score{!places[i].driver && sum > 0, places[i].device >= 0 && sum > 0, sum};
    if (score > most) {
      most = score;
      best = static_cast<int>(i);
    }
  }
  return best;
}

std::vector<PlacePeak> measure_places(const Store& store, const std::vector<Place>& places, std::span<const Stretch> steady,
                                      unsigned threads) {
  std::vector<std::uint8_t> place_of_kind(store.kinds.size(), kOut);
  for (std::size_t k = 0; k < store.kinds.size(); ++k)
    for (std::size_t p = 0; p < places.size(); ++p)
      if (std::ranges::find(places[p].pools, store.kinds[k].pool) != places[p].pools.end())
        place_of_kind[k] = static_cast<std::uint8_t>(p);
  constexpr std::uint64_t kPiece = 1u << 20;
  std::size_t pieces = (store.events() + kPiece - 1) / kPiece;
  std::vector<std::vector<PlacePeak>> parts(pieces, std::vector<PlacePeak>(places.size()));
  parallel(threads, pieces, [&](std::size_t piece, unsigned) {
    std::vector<PlacePeak>& mine = parts[piece];
    std::vector<Bytes> now(places.size(), 0);
    auto place_of = [&](std::uint64_t alloc) {
      return store.kind[alloc] < place_of_kind.size() ? place_of_kind[store.kind[alloc]] : kOut;
    };
    std::uint64_t from = piece * kPiece, to = std::min<std::uint64_t>(store.events(), from + kPiece);
    for_each_live(store, from, [&](std::uint32_t alloc) {
      if (std::uint8_t p = place_of(alloc); p != kOut) now[p] += store.kind_of(alloc).granted;
    });
    std::size_t part = 0;  // the first of steady training that is not behind us
    auto see = [&](std::uint8_t p, Moment at) {
      if (now[p] > mine[p].peak) mine[p].peak = now[p], mine[p].peak_at = at;
      while (part < steady.size() && steady[part].to < at) ++part;
      if (part < steady.size() && at >= steady[part].from && now[p] > mine[p].steady_peak)
        mine[p].steady_peak = now[p], mine[p].steady_peak_at = at;
    };
    for (std::uint64_t pos = from; pos < to; ++pos) {
      std::uint32_t ref = store.ref[pos];
      if (ref == kNone32 || (ref >> 1) >= store.birth.size()) continue;
      std::uint64_t alloc = ref >> 1;
      bool is_free = (ref & 1) != 0;
      if (is_free ? store.death[alloc] != pos || store.birth[alloc] >= pos : store.birth[alloc] != pos) continue;
      std::uint8_t p = place_of(alloc);
      if (p == kOut) continue;
      Bytes bytes = store.kind_of(alloc).granted;
      now[p] += is_free ? Bytes{0} - bytes : bytes;
      if (!is_free) mine[p].allocs += 1;
      see(p, pos + 1);
    }
    for (std::size_t p = 0; p < places.size(); ++p) mine[p].end = now[p];
  });
  std::vector<PlacePeak> out(places.size());
  for (const auto& part : parts)
    for (std::size_t p = 0; p < places.size(); ++p) {
      const PlacePeak& m = part[p];
      if (m.peak > out[p].peak) out[p].peak = m.peak, out[p].peak_at = m.peak_at;
      if (m.steady_peak > out[p].steady_peak) out[p].steady_peak = m.steady_peak, out[p].steady_peak_at = m.steady_peak_at;
      out[p].end = m.end;
      out[p].allocs += m.allocs;
    }
  // What was live when the steady state began may be its highest point.
  if (steady.empty()) return out;
  const Moment start = steady.front().from;
  std::vector<Bytes> at_start(places.size(), 0);
  if (steady.back().to > start)
    for_each_live(store, start, [&](std::uint32_t alloc) {
      std::uint8_t p = store.kind[alloc] < place_of_kind.size() ? place_of_kind[store.kind[alloc]] : kOut;
      if (p != kOut) at_start[p] += store.kind_of(alloc).granted;
    });
  for (std::size_t p = 0; p < places.size(); ++p)
    if (at_start[p] > out[p].steady_peak) out[p].steady_peak = at_start[p], out[p].steady_peak_at = start;
  return out;
}

}  // namespace vramscope::analyze
