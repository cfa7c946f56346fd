// Small sentences and lookups that several answers need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/api.h"
#include "serve/gen/rpc.h"

namespace vramscope::serve {

// Columns of a tile; tile i of level k covers [i * 2^k, (i + 1) * 2^k) microseconds.
inline constexpr std::uint32_t kTileColumns = 1024;
inline constexpr std::uint64_t kLowestLevel = 10;
inline constexpr std::uint64_t kHighestLevel = 50;  // 35 years

struct Tile {
  std::uint64_t t0 = 0, t1 = 0;
};
Result<Tile> tile_range(std::uint64_t level, std::uint64_t tile);

const analyze::Place* main_place(const analyze::Engine& engine);
const analyze::Step* step_at(const analyze::Steps& steps, std::uint64_t time_us);
// The instant that "steady" means where there is no steady state: the peak.
std::string usable_instant(const analyze::Engine& engine, std::string_view at);
// "at the steady peak", of an instant as usable_instant() gives it.
std::string_view instant_words(std::string_view at);

std::string setting(const analyze::Overview& overview, std::string_view key);
BlockRow row_of(const analyze::Block& block, std::uint64_t now_us, analyze::Bytes total);
double share_of(analyze::Bytes part, analyze::Bytes whole);
std::string seconds_text(std::uint64_t us);  // "5.97 s", "8.9 ms", "20 µs"
// "step 20 + 6.318 ms": an instant of a step, to the microsecond.
std::string step_text(const analyze::Step& step, std::uint64_t time_us);
std::string size_text(analyze::Bytes bytes);   // "259.8 MiB", as the page writes sizes
std::string count_text(std::uint64_t number);  // "22,649"
std::string capital(std::string_view text);
// With a capital and a full stop.
std::string sentence(std::string_view text);
std::string plural(std::uint64_t number, std::string_view one, std::string_view many);

// Where a finding is proved: "#map?at=...".
std::string address(std::string_view view, std::string_view at, std::string_view where);

template <typename T>
std::vector<double> column(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace vramscope::serve
