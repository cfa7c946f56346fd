#include "cli/write_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/show/answer.h"
#include "exporters/format.h"
#include "exporters/identity.h"
#include "exporters/tables.h"
#include "support/fresh_file.h"

namespace vramscope::cli {

Status write_tables(const std::vector<std::filesystem::path>& traces, const std::vector<std::filesystem::path>& sources,
                    const std::filesystem::path& folder, const std::function<bool(std::string_view table)>& wanted) {
  const auto formats = exporters::formats();
  const exporters::Format& parquet = **std::ranges::find(formats, "parquet", &exporters::Format::name);
  const std::vector<std::string> runs = exporters::run_names(sources);
  std::set<std::filesystem::path> seen;
  for (const auto& source : sources) {
    std::error_code error;
    if (!seen.insert(std::filesystem::weakly_canonical(source, error)).second)
      return fail(fmt::format("{}: named twice, and would count twice; name each trace once", source.string()));
  }
  for (std::size_t i = 0; i < traces.size(); ++i) {
    auto engine = analyze::Engine::open(traces[i]);
    if (!engine) return std::unexpected(engine.error());
    const analyze::Overview overview = engine->overview();
    say_damage(traces[i], overview.damage);
    say_source(overview);
    for (const exporters::Table& table : exporters::tables()) {
      if (!wanted(table.name)) continue;
      auto file = support::FreshFile::create(folder / fmt::format("{}-{:05}.parquet", table.name, i));
      if (!file) return std::unexpected(file.error());
      exporters::Output out(*file);
      if (Status status = parquet.write({.engine = *engine, .table = std::string(table.name), .run = runs[i]}, out); !status)
        return status;
      if (Status status = out.finish(); !status) return status;
      if (Status status = file->keep(); !status) return status;
    }
  }
  return {};
}

}  // namespace vramscope::cli
