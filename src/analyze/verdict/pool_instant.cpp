#include "analyze/verdict/pool_instant.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/sentence.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_plural;
using support::format_size;

constexpr std::uint64_t kSameInstantUs = 1000;  // a pool grows, and then hands out the block
constexpr std::size_t kMostHoles = 8;

const Grown* growth_at(const Fragmentation& fragmentation, std::uint64_t time_us) {
  for (const Grown& grown : fragmentation.grown)
    if (grown.time_us == time_us || (time_us > grown.time_us && time_us - grown.time_us < kSameInstantUs)) return &grown;
  return nullptr;
}

// Whether a region is the one that a pool took when it grew.
bool is_taken_by(const Grown* grown, const Region& region) {
  return grown != nullptr && region.since_us + kSameInstantUs > grown->time_us &&
         region.since_us <= grown->time_us + kSameInstantUs && region.bytes >= grown->request;
}

RegionNote note_of(const Region& region, std::uint64_t now_us, const Grown* grown) {
  if (is_taken_by(grown, region)) return {"allocated now for this request", true};
  if (region.live > 0) return {};
  if (region.empty_since_step > 0) return {fmt::format("empty since step {}", region.empty_since_step), false};
  return {region.empty_since_us > 0 && region.empty_since_us <= now_us
              ? fmt::format("empty since {}", support::format_duration(region.empty_since_us))
              : "empty",
          false};
}

std::vector<Hole> largest_holes(const AddressMap& map) {
  std::vector<Hole> sorted(map.holes);
  std::ranges::stable_sort(sorted, std::greater{}, &Hole::bytes);
  sorted.resize(std::min(kMostHoles, sorted.size()));
  return sorted;
}

// The request that the holes are compared with: the one that failed here, the one that made the pool grow here, else the largest
// recent one.
std::optional<PoolRequest> request_of(const Engine& engine, const AddressMap& map, const Fragmentation& fragmentation,
                                      const Grown* grown, const OomEvent* failed) {
  if (failed != nullptr) {
    PoolRequest out{.bytes = failed->requested, .time_us = failed->time_us, .kind = "oom", .holes = largest_holes(map)};
    if (failed->largest_free > map.largest_hole) out.room = failed->largest_free;
    out.note = fmt::format("{} was free in {}, the largest {}", format_size(map.free),
                           format_plural(map.holes.size(), "hole", "holes"), format_size(map.largest_hole));
    return out;
  }
  if (grown != nullptr) {
    PoolRequest out{.bytes = grown->request, .time_us = grown->time_us, .kind = "grown"};
    out.note =
        fmt::format("{} free in {}, largest {}; the pool grew by {}", format_size(grown->free),
                    format_plural(grown->holes, "hole", "holes"), format_size(grown->largest_hole), format_size(grown->grew_by));
    if (const auto before = engine.address_map({.at = fmt::format("moment:{}", grown->at > 0 ? grown->at - 1 : 0), .where = {}}))
      out.holes = largest_holes(*before);
    return out;
  }
  if (map.holes.empty() || fragmentation.worst.request == 0) return std::nullopt;
  return PoolRequest{.bytes = fragmentation.worst.request,
                     .time_us = fragmentation.worst.time_us,
                     .note = "The largest recent request, compared with the holes at this instant.",
                     .holes = largest_holes(map)};
}

// What is to be said about this instant, not about the run.
std::string sentence_of(const AddressMap& map, const Grown* grown, const OomEvent* failed) {
  if (failed != nullptr) return failed->sentence;
  if (grown != nullptr)
    return fmt::format("{} did not fit although {} was free: the largest of {} was {}, so the pool grew by {}.",
                       format_size(grown->request), format_size(grown->free), format_plural(grown->holes, "hole", "holes"),
                       format_size(grown->largest_hole), format_size(grown->grew_by));
  if (map.regions.empty()) return "The pool holds no memory at this instant.";
  if (map.holes.empty()) return fmt::format("All {} of the pool is in use at this instant.", format_size(map.pool_bytes));
  if (map.live == 0) return fmt::format("All {} of the pool is free at this instant.", format_size(map.pool_bytes));
  return fmt::format("{} of the pool's {} is free at this instant, in {}; the largest is {}.", format_size(map.free),
                     format_size(map.pool_bytes), format_plural(map.holes.size(), "hole", "holes"),
                     format_size(map.largest_hole));
}

// A sentence as the rest of another one.
std::string within(std::string sentence) {
  if (!sentence.empty() && sentence[0] >= 'A' && sentence[0] <= 'Z') sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
  return sentence;
}

}  // namespace

const OomEvent* failure_at(const Ooms& ooms, Moment at) {
  const auto found = std::ranges::find(ooms.events, at, &OomEvent::at);
  return found != ooms.events.end() ? &*found : nullptr;
}

PoolInstant pool_instant(const Engine& engine, const AddressMap& map, const Fragmentation& fragmentation, const Ooms& ooms,
                         std::string_view remedy) {
  const OomEvent* failed = failure_at(ooms, map.at);
  const Grown* grown = failed == nullptr ? growth_at(fragmentation, map.time_us) : nullptr;
  PoolInstant out;
  out.sentence = sentence_of(map, grown, failed);
  out.note = failed != nullptr  ? std::string(remedy)
             : grown != nullptr ? support::as_sentence(fragmentation.advice)
                                : fmt::format("In the whole run, {}", within(fragmentation.sentence));
  const std::string free =
      map.holes.empty() ? "nothing free"
                        : fmt::format("{} free in {}", format_size(map.free), format_plural(map.holes.size(), "hole", "holes"));
  out.summary =
      fmt::format("{}, {}: {} live in {}, {}", format_plural(map.regions.size(), "region", "regions"),
                  format_size(map.pool_bytes), format_size(map.live), format_plural(map.blocks.size(), "block", "blocks"), free);
  for (const Region& region : map.regions) out.regions.push_back(note_of(region, map.time_us, grown));
  if (!map.regions.empty()) out.request = request_of(engine, map, fragmentation, grown, failed);
  return out;
}

}  // namespace vramscope::analyze
