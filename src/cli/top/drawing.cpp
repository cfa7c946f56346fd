#include "cli/top/drawing.h"

#include <algorithm>

#include "support/units.h"

namespace vramscope::cli::top {

std::string mib(Bytes bytes) { return support::format_in(bytes, kMiB); }
std::string mib(const std::optional<Bytes>& bytes) { return bytes ? mib(*bytes) : "–"; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

std::vector<double> curve(const Process& process, std::uint64_t now_us, int columns, Bytes top) {
  std::vector<double> out(static_cast<std::size_t>(std::max(0, columns)), 0);
  if (out.empty() || top == 0) return out;
  for (const auto& [time, live] : process.history) {
    if (now_us - time >= kHistoryUs) continue;
    const auto at = static_cast<std::size_t>((kHistoryUs - (now_us - time) - 1) * out.size() / kHistoryUs);
    const double value = static_cast<double>(live) / static_cast<double>(top);
    // A reading stands until the next one.
    for (std::size_t i = at; i < out.size(); ++i) out[i] = i == at ? std::max(out[i], value) : value;
  }
  return out;
}

}  // namespace vramscope::cli::top
