#include "cli/run_folder.h"

#include <fmt/format.h>

#include "analyze/api.h"
#include "cli/foreign.h"
#include "cli/run/memory_limit.h"
#include "cli/show/ranks.h"

namespace vramscope::cli {

namespace {

// A profile of another tool is imported first.
Result<std::vector<std::filesystem::path>> own_traces_in(const std::filesystem::path& place) {
  std::error_code error;
  if (std::filesystem::is_directory(place, error)) return analyze::traces_in(place);
  const auto trace = as_trace(place);
  if (!trace) return std::unexpected(trace.error());
  return analyze::traces_in(*trace);
}

}  // namespace

Result<std::vector<std::filesystem::path>> traces_of(const std::filesystem::path& place) {
  auto traces = own_traces_in(place);
  if (!traces) return traces;
  limit_memory(*traces);
  return of_chosen_rank(std::move(*traces));
}

Result<std::filesystem::path> only_trace_of(const std::filesystem::path& place) {
  const auto traces = traces_of(place);
  if (!traces) return std::unexpected(traces.error());
  if (traces->size() > 1)
    return fail(fmt::format("{}: {} traces in this folder; name one of them, such as {}", place.string(), traces->size(),
                            traces->front().string()));
  return traces->front();
}

Result<std::vector<std::string>> places_of(std::vector<std::string> places) {
  for (std::string& place : places) {
    std::error_code error;
    if (std::filesystem::is_directory(place, error)) continue;
    const auto trace = as_trace(place);
    if (!trace) return std::unexpected(trace.error());
    place = trace->string();
  }
  if (!rank_is_chosen()) return places;
  std::vector<std::string> chosen;
  for (const std::string& place : places) {
    auto all = analyze::traces_in(place);
    if (!all) return std::unexpected(all.error());
    const auto traces = of_chosen_rank(std::move(*all));
    if (!traces) return std::unexpected(traces.error());
    for (const auto& trace : *traces) chosen.push_back(trace.string());
  }
  return chosen;
}

}  // namespace vramscope::cli
