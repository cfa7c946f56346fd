// Writes the self-contained page: the bundle with precomputed answers inside, within a budget of bytes.
#pragma once

#include <cstdint>
#include <string>

#include "serve/library.h"

namespace vramscope::serve {

struct ReportOptions {
  std::uint64_t budget = 5'000'000;  // of the whole file
};

struct Report {
  std::string html;
  std::uint64_t answers = 0;
  std::uint64_t left_out = 0;  // that would have been useful, beyond the budget
};

Result<Report> make_report(const std::shared_ptr<Library>& library, const ReportOptions& options);

// The page's own spelling of a request: must be the same as requestKey() in ui/src/rpc/client.ts.
std::string request_key(std::string_view name, const std::vector<std::pair<std::string_view, std::string>>& params);

}  // namespace vramscope::serve
