#include "importers/counted_events.h"

#include <algorithm>
#include <unordered_set>

#include "support/secret_hash.h"

namespace vramscope::importers {

namespace {

// Where no allocator puts a block.
constexpr std::uint64_t kNowhere = 8;

}  // namespace

std::uint64_t whole(double number) { return number > 0 && number < 1e18 ? static_cast<std::uint64_t>(number) : 0; }

bool add_counted(Profile& profile, std::uint32_t pool, std::vector<CountedEvent> events) {
  std::ranges::stable_sort(events, {}, &CountedEvent::time_us);
  std::unordered_set<std::uint64_t, support::SecretHash> seen;
  std::uint64_t freed_later = 0;
  const Details before{.region = profile.text("before the profile")};
  for (const CountedEvent& event : events)
    if (seen.insert(event.address).second && event.is_free) {
      profile.was_live(pool, event.address, event.requested, event.granted, before);
      freed_later += event.granted;
    }
  std::uint64_t rest = 0;
  if (!events.empty() && events.front().total > 0) {
    const CountedEvent& first = events.front();
    const std::uint64_t at_start =
        first.is_free ? first.total + first.granted : first.total - std::min(first.total, first.granted);
    rest = at_start - std::min(at_start, freed_later);
  }
  if (rest > 0) profile.was_live(pool, kNowhere, rest, rest, before);
  for (const CountedEvent& event : events) {
    if (event.is_free)
      profile.free(whole(event.time_us), pool, event.address);
    else
      profile.alloc(whole(event.time_us), pool, event.address, event.requested, event.granted, event.details);
  }
  return rest > 0 || freed_later > 0;
}

}  // namespace vramscope::importers
