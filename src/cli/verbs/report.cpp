#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/open_files.h"
#include "cli/output_file.h"
#include "cli/run/memory_limit.h"
#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/source_root.h"
#include "cli/verb.h"
#include "serve/report.h"
#include "support/file.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

// The trace's name makes the name of the output, and may come from anyone: index.vram must not replace a page index.html.
bool is_of_somebody_else(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, error))) return false;
  const auto found = support::ReadFile::open(file);
  support::Buffer head(found ? std::min<std::uint64_t>(found->size(), 4096) : 0);
  if (head.empty() || !found->read(0, head)) return true;
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size()).find("<title>vramscope</title>") ==
         std::string_view::npos;
}

class ReportVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("traces", traces_, "traces (.vram) or run folders");
    arguments.text("-o,--output", output_, "output file (default: the trace's name with .html)", "FILE");
    arguments.size("--report-budget", budget_,
                   "maximum file size; beyond it, detail from uneventful periods is omitted (default: 5 MB)");
    arguments.text("--source-root", source_root_, kSourceRootHelp, "DIR");
  }

  Result<int> run() override {
    auto root = open_source_root(source_root_);
    if (!root) return std::unexpected(root.error());
    const auto places = places_of(traces_);
    if (!places) return std::unexpected(places.error());
    const std::string file =
        output_.empty() ? std::filesystem::path(traces_.front()).filename().replace_extension(".html").string() : output_;
    if (auto ok = not_an_input(file, traces_); !ok) return std::unexpected(ok.error());
    if (output_.empty() && is_of_somebody_else(file))
      return fail(fmt::format("{} exists and is not a report; choose an output file with -o", file));
    for (const std::string& place : *places)
      if (const auto traces = analyze::traces_in(place)) limit_memory(*traces);
    if (const Status ok = allow_open_files(*places); !ok) return std::unexpected(ok.error());
    auto library = serve::Library::open(*places, false);
    if (!library) return std::unexpected(library.error());
    const std::shared_ptr<serve::Library> shared = std::move(*library);
    if (*root) shared->set_source_root(std::move(**root));
    if (!say_what_is_wrong(*shared)) return 2;
    const auto report = serve::make_report(shared, {.budget = budget_});
    if (!report) return std::unexpected(report.error());
    if (auto ok = write_output(file, report->html); !ok) return std::unexpected(ok.error());
    fmt::print(stderr, "vramscope: {} ({}) opens in any browser, offline\n", printable(file),
               support::format_size(report->html.size()));
    if (report->left_out > 0)
      fmt::print(stderr, "vramscope: single events from long periods are omitted; 'vramscope serve {}' shows all of them\n",
                 printable(traces_.front()));
    return 0;
  }

 private:
  // Prints a line for each incomplete trace. False: none can be read.
  static bool say_what_is_wrong(const serve::Library& library) {
    bool readable = false;
    for (std::size_t i = 0; i < library.size(); ++i) {
      const auto trace = library.trace(i);
      trace ? say_damage(library.name(i), (*trace)->overview().damage) : say_failure(trace.error().message);
      readable |= trace.has_value();
    }
    return readable;
  }

  std::vector<std::string> traces_;
  std::string output_;
  std::string source_root_;
  std::uint64_t budget_ = 5'000'000;
};

const Register kVerb{{.name = "report",
                      .group = Group::answer,
                      .help = "write one self-contained HTML file that needs no server and no network",
                      .examples = "  vramscope report run.vram -o report.html\n"
                                  "  vramscope report before.vram after.vram -o compare.html\n",
                      .make = make<ReportVerb>}};

}  // namespace

}  // namespace vramscope::cli
