#include "collect/recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "collect/collector.h"
#include "collect/manifest.h"
#include "collect/session.h"
#include "trace/reader.h"

namespace vramscope::collect {

namespace {

enum class Before { none, partial, complete };

// What the collector had already written for this process.
Before find_partial(const Session& session, const CollectOptions& options, std::filesystem::path& path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.output, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(session.trace_stem()) || entry.path().extension() != ".vram") continue;
    const auto reader = trace::Reader::open(entry.path());
    if (!reader || reader->start_realtime_us() != session.start_realtime_us()) continue;
    path = entry.path();
    return reader->damage().truncated ? Before::partial : Before::complete;
  }
  return Before::none;
}

void recover_one(const std::filesystem::path& spool, const CollectOptions& options, TickClock& clock, Recovered& result) {
  Sampler no_samples(0);
  auto session = Session::open(spool, options, clock, no_samples);
  if (!session) {
    result.remarks.push_back(session.error().message);
    return;
  }
  Session& process = **session;
  if (!process.has_ended()) {
    result.remarks.push_back(fmt::format("process {} still runs: recover again when it has ended", process.pid()));
    return;
  }
  clock.widen_base(process.header());
  std::filesystem::path before;
  const Before found = find_partial(process, options, before);
  if (found == Before::partial) process.continue_from(before);
  if (found != Before::complete) {
    TraceInfo info = process.finish({{"vramscope.recovered", "the collector did not end by itself"}});
    if (process.has_trace() && !info.complete) {
      result.remarks.push_back(fmt::format("process {}: its trace could not be written; the spool stays", process.pid()));
      return;
    }
    if (process.has_trace()) result.traces.push_back(std::move(info));
  }
  process.remove_files();
}

}  // namespace

Result<Recovered> recover(const CollectOptions& options) {
  if (has_collector(options.spool_folder))
    return fail(fmt::format("{}: still being recorded; it ends with the command", options.output.string()));
  std::vector<std::filesystem::path> spools;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.spool_folder, error))
    if (entry.path().extension() == ".spool") spools.push_back(entry.path());
  if (error) return fail(fmt::format("{}: {}", options.spool_folder.string(), error.message()));
  std::sort(spools.begin(), spools.end());
  TickClock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  clock.calibrate();
  Recovered result;
  for (const auto& spool : spools) recover_one(spool, options, clock, result);
  return result;
}

}  // namespace vramscope::collect
