#include "collect/recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "collect/session.h"
#include "collect/write/stored_trace.h"

namespace vramscope::collect {

namespace {

void recover_one(const std::filesystem::path& spool, const CollectOptions& options, TickClock& clock, Recovered& result) {
  Sampler no_samples(0);
  auto session = Session::open(spool, options, clock, no_samples);
  if (!session) {
    result.remarks.push_back(session.error().message);
    return;
  }
  Session& process = **session;
  if (!process.has_ended()) {
    result.remarks.push_back(
        fmt::format("process {}: still running; run 'vramscope recover' again when it has exited", process.pid()));
    return;
  }
  clock.widen_base(process.header());
  auto stored = process.find_stored();
  // A complete trace that lacks events of the spool is not the end of this recording, whatever its name is.
  const bool finished = stored && stored->is_complete() && stored->last_seq() >= process.last_seq_in_spool();
  if (!finished) {
    if (stored) process.continue_from(std::move(*stored));
    TraceInfo info = process.finish({{"vramscope.recovered", "the collector did not exit normally"}});
    if (!process.problem().empty()) {
      result.remarks.push_back(fmt::format("{}; the recording is kept in {}: run 'vramscope recover' again", process.problem(),
                                           options.spool_folder.string()));
      result.unfinished = true;
      return;
    }
    if (process.has_trace()) result.traces.push_back(std::move(info));
  }
  process.remove_files();
}

}  // namespace

Result<Recovered> recover(const support::OwnedFolder& spool, CollectOptions options) {
  options.spool_folder = spool.path();
  options.recovering = true;
  auto claim = FolderClaim::take(options.spool_folder, options.output);
  if (!claim) return std::unexpected(claim.error());
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
  result.claim = std::move(*claim);
  for (const auto& path : spools) recover_one(path, options, clock, result);
  return result;
}

}  // namespace vramscope::collect
