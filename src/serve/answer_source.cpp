// Lines of source with the bytes they hold, and completions for the filter box.
#include <algorithm>

#include "analyze/gen/texts.h"
#include "analyze/source_lines.h"
#include "analyze/source_status.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "serve/source_text.h"

namespace vramscope::serve {

namespace {

constexpr std::size_t kMostFiles = 200;

}  // namespace

Result<Source> EngineService::source(const SourceParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto lines = analyze::source_lines(engine, usable_instant(engine, params.at), params.filter);
  if (!lines) return std::unexpected(lines.error());
  Source out;
  out.t = static_cast<double>(lines->time_us);
  out.sentence = lines->sentence;
  out.note = lines->note;
  for (const analyze::SourceFile& file : lines->files)
    if (out.files.size() < kMostFiles) out.files.push_back({file.path, static_cast<double>(file.bytes)});
  if (out.files.empty()) return out;
  // A request may name the file by its last parts.
  const std::string wanted = params.file.empty() ? out.files[0].path : params.file;
  const auto file = std::ranges::find_if(
      lines->files, [&](const analyze::SourceFile& one) { return one.path == wanted || one.path.ends_with("/" + wanted); });
  SourceText text{.path = wanted};
  if (file == lines->files.end()) {
    text.status = analyze::kNoLiveBlock;
  } else {
    text.path = file->path;
    text.lines = file->lines;
    fill_source_text(text, engine, trace.overview(), library_->source_root());
  }
  out.file = std::move(text);
  return out;
}

Result<Suggestions> EngineService::suggest(const SuggestParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  Suggestions out;
  out.items = (*found)->engine().complete(params.text);
  if (const auto status = (*found)->engine().check_filter(params.text); !status) out.error = status.error().message;
  return out;
}

}  // namespace vramscope::serve
