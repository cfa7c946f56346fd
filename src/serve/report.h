// Writes the self-contained page: the bundle with precomputed answers, within a budget of bytes.
#pragma once

#include <cstdint>
#include <string>

#include "serve/library.h"

namespace vramscope::serve {

struct ReportOptions {
  std::uint64_t budget = 5'000'000;  // of the whole file
  // Blocks and events to look at, and bytes to write, for what a click may ask; the first answers of each view are always made.
  // Counted, not timed: a report is the same wherever it is made.
  std::uint64_t most_work = 200'000'000;
};

struct Report {
  std::string html;
  std::uint64_t answers = 0;
  std::uint64_t left_out = 0;  // useful answers that exceeded the budget
  std::uint64_t work = 0;      // blocks and events looked at, and bytes made, for answers that are only nice to have
};

Result<Report> make_report(const std::shared_ptr<Library>& library, const ReportOptions& options);

// The page's own spelling of a request: must match requestKey() in ui/src/rpc/client.ts.
std::string request_key(std::string_view name, const std::vector<std::pair<std::string_view, std::string>>& params);

}  // namespace vramscope::serve
