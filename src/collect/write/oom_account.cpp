#include "collect/write/oom_account.h"

#include <fmt/format.h>

#include "support/units.h"

namespace vramscope::collect {

std::string describe(const OomAccount& account) {
  const std::string who = account.op.empty() ? std::string() : fmt::format(" by {}", account.op);
  std::string text =
      fmt::format("vramscope: out of memory in {}: {} requested{}", account.pool, support::format_size(account.requested), who);
  if (account.regions > 0) {
    const std::uint64_t free = account.regions > account.live ? account.regions - account.live : 0;
    text += fmt::format("; {} of the pool's {} was free, in pieces of at most {}", support::format_size(free),
                        support::format_size(account.regions), support::format_size(account.largest_free));
    if (account.limit > account.regions)
      text += fmt::format(", and it could have grown by {}", support::format_size(account.limit - account.regions));
  } else {
    text += fmt::format("; {} was live", support::format_size(account.live));
  }
  text += ".\n";
  if (!account.holders.empty()) text += "vramscope: largest holders:\n";
  for (const auto& holder : account.holders)
    text += fmt::format("  {:>12}  {} ({})\n", support::format_size(holder.bytes),
                        holder.name.empty() ? "not attributed" : holder.name,
                        support::format_plural(holder.blocks, "block", "blocks"));
  return text;
}

}  // namespace vramscope::collect
