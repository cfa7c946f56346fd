// Collapsed stacks, one line per stack with its live bytes: what flamegraph.pl and its successors read.
#include <fmt/format.h>

#include <map>

#include "exporters/format.h"
#include "exporters/stack_sums.h"
#include "exporters/utf8.h"

namespace vramscope::exporters::collapsed {

extern const Format kFormat;

namespace {

// Frames are separated by semicolons, and the last space of a line comes before the number.
std::string frame_text(const StackFrame& frame) {
  std::string text = frame.line == 0 ? frame.function : fmt::format("{} ({}:{})", frame.function, frame.file, frame.line);
  for (char& c : text)
    if (c == ';' || c == '\n' || c == '\r') c = ':';
  return as_utf8(text);
}

Status write(const Request& request, Output& out) {
  analyze::BlockRows rows(request.engine);
  const auto sums = stack_sums(request, rows);
  if (!sums) return std::unexpected(sums.error());
  std::map<std::string, std::uint64_t> lines;
  for (const StackSum& sum : sums->sums) {
    if (sum.live_bytes == 0) continue;
    std::string line;
    for (auto frame = sum.frames.rbegin(); frame != sum.frames.rend(); ++frame)
      line += fmt::format("{}{}", line.empty() ? "" : ";", frame_text(sums->frames[*frame]));
    lines[line] += sum.live_bytes;
  }
  for (const auto& [line, bytes] : lines) out.write(fmt::format("{} {}\n", line, bytes));
  return {};
}

}  // namespace

const Format kFormat{.name = "collapsed",
                     .extension = ".txt",
                     .opens_in = "flamegraph.pl, inferno, speedscope",
                     .takes = kTakesPlace | kTakesInstant,
                     .write = write};

}  // namespace vramscope::exporters::collapsed
