// All blocks of a run, or those at an instant: what the page of a report computes the rest from.
#include <fmt/format.h>

#include "analyze/query/all_blocks.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"

namespace vramscope::serve {

namespace {

constexpr std::uint64_t kMostEvents = 1'000'000;

}  // namespace

Result<Blocks> EngineService::blocks(const BlocksParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const analyze::Engine& engine = (*found)->engine();
  std::optional<analyze::Moment> at;
  if (!params.at.empty()) {
    const auto moment = engine.resolve(usable_instant(engine, params.at));
    if (!moment) return std::unexpected(moment.error());
    at = *moment;
  } else if ((*found)->overview().events > kMostEvents) {
    return fail(fmt::format("a run of more than {} events has too many blocks to list", kMostEvents));
  }
  const auto all = analyze::all_blocks(engine, at);
  if (!all) return std::unexpected(all.error());
  Blocks out;
  out.moment = at.value_or(0);
  out.fields = all->fields;
  out.texts = all->texts;
  out.kinds = column(all->kinds);
  out.granted = column(all->granted);
  out.requested = column(all->requested);
  out.id = column(all->id);
  out.kind = column(all->kind);
  out.step = column(all->step);
  out.birth = column(all->birth);
  out.lives = column(all->lives);
  out.born = column(all->born_us);
  out.t = column(all->time_us);
  return out;
}

}  // namespace vramscope::serve
