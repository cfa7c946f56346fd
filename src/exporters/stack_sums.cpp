#include "exporters/stack_sums.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "analyze/absent.h"

namespace vramscope::exporters {

namespace {

class Frames {
 public:
  Frames(const analyze::Engine& engine, std::vector<StackFrame>& frames) : engine_(engine), frames_(frames) {}

  std::vector<std::uint32_t> of(const analyze::BlockRow& row) {
    std::vector<std::uint32_t> out;
    if (!row.texts->op.empty()) out.push_back(id({row.texts->op, {}, 0}));
    for (const analyze::Frame& frame : engine_.stack(row.stack)) {
      const bool native = frame.function.empty();
      out.push_back(id({native ? fmt::format("{}+{:#x}", frame.file, frame.offset) : frame.function, frame.file, frame.line}));
    }
    if (out.empty()) out.push_back(id({row.texts->owner.empty() ? "unknown" : row.texts->owner, {}, 0}));
    return out;
  }

 private:
  std::uint32_t id(StackFrame frame) {
    const auto [found, fresh] = ids_.try_emplace({frame.function, frame.file, frame.line}, frames_.size());
    if (fresh) frames_.push_back(std::move(frame));
    return static_cast<std::uint32_t>(found->second);
  }

  const analyze::Engine& engine_;
  std::vector<StackFrame>& frames_;
  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::size_t> ids_;
};

}  // namespace

Result<StackSums> stack_sums(const Request& request, analyze::BlockRows& rows) {
  const auto at = request.engine.resolve(request.at, request.place);
  if (!at) return std::unexpected(at.error());
  const int place = request.place < 0 ? request.engine.main_place() : request.place;
  if (place < 0) return fail(std::string(analyze::kNoAllocations));
  StackSums out;
  out.place = request.engine.places()[static_cast<std::size_t>(place)].name;
  out.at = *at;
  out.at_us = request.engine.time_of(*at);
  Frames frames(request.engine, out.frames);
  // The views point to static names and to the store, so that their addresses stand for their content.
  std::map<std::tuple<std::uint32_t, const char*, const char*>, std::size_t> by_kind;
  std::map<std::tuple<std::uint32_t, std::string_view, std::string_view, std::string_view, std::string_view>, std::size_t>
      by_content;
  for (std::uint64_t id = 0; id < rows.size(); ++id) {
    if (!rows.recorded(id)) continue;
    const analyze::BlockRow row = rows.row(id);
    if (rows.place_of_pool(row.pool) != place) continue;
    const auto [kind, unseen] = by_kind.try_emplace({row.kind, row.category.data(), row.layer.data()}, 0);
    if (unseen) {
      const auto [content, fresh] =
          by_content.try_emplace({row.stack, row.texts->op, row.category, row.layer, row.texts->dtype}, out.sums.size());
      if (fresh)
        out.sums.push_back({.frames = frames.of(row), .category = row.category, .layer = row.layer, .dtype = row.texts->dtype});
      kind->second = content->second;
    }
    StackSum& sum = out.sums[kind->second];
    sum.allocated_count += 1;
    sum.allocated_bytes += row.granted;
    if (row.birth <= *at && *at < row.death) {
      sum.live_count += 1;
      sum.live_bytes += row.granted;
    }
  }
  return out;
}

}  // namespace vramscope::exporters
