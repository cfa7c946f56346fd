#include "analyze/index/places.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analyze/index/lifetime.h"
#include "analyze/index/parallel.h"
#include "analyze/index/pyramid.h"

namespace vramscope::analyze {

std::vector<Place> places_of(const trace::Dictionaries& dictionaries) {
  // Managed memory and arrays count as device memory here; reserved addresses without memory are a place of their own.
  enum Where { kDevice, kPinned, kHost, kAddresses };
  std::map<std::tuple<bool, std::int64_t, int>, Place> found;
  for (std::uint32_t i = 0; i < dictionaries.pools.size(); ++i) {
    const trace::Pool& pool = dictionaries.pools[i];
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
  std::vector<double> bytes(store.dictionaries().pools.size(), 0);
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

namespace {

// The place of each kind's blocks, or kOut.
std::vector<std::uint8_t> places_of_kinds(const Store& store, const std::vector<Place>& places) {
  std::vector<std::uint8_t> out(store.kinds.size(), kOut);
  for (std::size_t k = 0; k < store.kinds.size(); ++k)
    for (std::size_t p = 0; p < places.size(); ++p)
      if (std::ranges::find(places[p].pools, store.kinds[k].pool) != places[p].pools.end()) out[k] = static_cast<std::uint8_t>(p);
  return out;
}

// Measures all places of a store at once.
class PlaceMeter {
 public:
  PlaceMeter(const Store& store, const std::vector<Place>& places, std::span<const Stretch> steady)
      : store_(store), steady_(steady), places_(places.size()), place_of_kind_(places_of_kinds(store, places)) {}

  std::vector<Bytes> live_at(Moment at) const {
    std::vector<Bytes> out(places_, 0);
    for_each_live(store_, at, [&](std::uint32_t alloc) {
      if (const std::uint8_t p = place_of(alloc); p != kOut) out[p] += store_.kind_of(alloc).granted;
    });
    return out;
  }

  // The peaks after each of the events [from, to).
  std::vector<PlacePeak> measure(std::uint64_t from, std::uint64_t to) const {
    std::vector<PlacePeak> out(places_);
    std::vector<Bytes> now = live_at(from);
    std::size_t stretch = 0;  // of steady training: the first one that has not ended
    for (std::uint64_t pos = from; pos < to; ++pos) {
      const std::uint32_t ref = store_.ref[pos];
      const std::uint64_t alloc = ref >> 1;
      const bool is_free = (ref & 1) != 0;
      if (ref == kNone32 || !counts(alloc, is_free, pos)) continue;
      const std::uint8_t p = place_of(alloc);
      if (p == kOut) continue;
      const Bytes bytes = store_.kind_of(alloc).granted;
      const Moment after = pos + 1;
      now[p] += is_free ? Bytes{0} - bytes : bytes;
      if (!is_free) out[p].allocs += 1;
      raise_peak(out[p], now[p], after);
      while (stretch < steady_.size() && steady_[stretch].to < after) ++stretch;
      if (stretch < steady_.size() && after >= steady_[stretch].from) raise_steady_peak(out[p], now[p], after);
    }
    for (std::size_t p = 0; p < places_; ++p) out[p].end = now[p];
    return out;
  }

  // What was live when the steady state began may be its highest point.
  void add_steady_start(std::vector<PlacePeak>& peaks) const {
    if (steady_.empty() || steady_.back().to <= steady_.front().from) return;
    const Moment start = steady_.front().from;
    const std::vector<Bytes> live = live_at(start);
    for (std::size_t p = 0; p < places_; ++p) raise_steady_peak(peaks[p], live[p], start);
  }

  static void raise_peak(PlacePeak& place, Bytes bytes, Moment at) {
    if (bytes <= place.peak) return;
    place.peak = bytes;
    place.peak_at = at;
  }
  static void raise_steady_peak(PlacePeak& place, Bytes bytes, Moment at) {
    if (bytes <= place.steady_peak) return;
    place.steady_peak = bytes;
    place.steady_peak_at = at;
  }

 private:
  std::uint8_t place_of(std::uint64_t alloc) const {
    return store_.kind[alloc] < place_of_kind_.size() ? place_of_kind_[store_.kind[alloc]] : kOut;
  }
  // A free without a birth, or a second free of the same block, changes nothing.
  bool counts(std::uint64_t alloc, bool is_free, std::uint64_t pos) const {
    if (alloc >= store_.birth.size()) return false;
    return is_free ? store_.death[alloc] == pos && store_.birth[alloc] < pos : store_.birth[alloc] == pos;
  }

  const Store& store_;
  std::span<const Stretch> steady_;
  std::size_t places_;
  std::vector<std::uint8_t> place_of_kind_;
};

}  // namespace

std::vector<PlacePeak> measure_places(const Store& store, const std::vector<Place>& places, std::span<const Stretch> steady,
                                      unsigned threads) {
  constexpr std::uint64_t kPiece = 1u << 20;
  const PlaceMeter meter(store, places, steady);
  std::vector<std::vector<PlacePeak>> pieces((store.events() + kPiece - 1) / kPiece);
  parallel(threads, pieces.size(), [&](std::size_t i, unsigned) {
    pieces[i] = meter.measure(i * kPiece, std::min<std::uint64_t>(store.events(), (i + 1) * kPiece));
  });
  std::vector<PlacePeak> out(places.size());
  for (const std::vector<PlacePeak>& piece : pieces)
    for (std::size_t p = 0; p < places.size(); ++p) {
      PlaceMeter::raise_peak(out[p], piece[p].peak, piece[p].peak_at);
      PlaceMeter::raise_steady_peak(out[p], piece[p].steady_peak, piece[p].steady_peak_at);
      out[p].end = piece[p].end;
      out[p].allocs += piece[p].allocs;
    }
  meter.add_steady_start(out);
  return out;
}

}  // namespace vramscope::analyze
