#include "cli/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "analyze/api.h"
#include "serve/open_traces.h"

namespace vramscope::cli {

Status allow_open_files(const std::vector<std::string>& places) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  std::size_t traces = 0;
  for (const std::string& place : places)
    if (const auto found = analyze::traces_in(place)) traces += found->size();
  if (traces <= serve::most_open_traces()) return {};
  return fail(
      fmt::format("{} traces are too many: the limit on open files (ulimit -n) allows for {}; raise it, or name fewer traces",
                  traces, serve::most_open_traces()));
}

}  // namespace vramscope::cli
