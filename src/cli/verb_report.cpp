#include <fmt/format.h>

#include <filesystem>

#include "cli/answer.h"
#include "cli/output_file.h"
#include "cli/run_folder.h"
#include "cli/verb.h"
#include "serve/report.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class ReportVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("traces", traces_, "traces (.vram) or run folders");
    arguments.text("-o,--output", output_, "file to write (default: the trace's name with .html)", "FILE");
    arguments.size("--report-budget", budget_,
                   "size of the file; beyond it detail of uneventful times is left out (default: 5 MB)");
  }

  Result<int> run() override {
    const auto places = places_of(traces_);
    if (!places) return std::unexpected(places.error());
    const std::string file =
        output_.empty() ? std::filesystem::path(traces_.front()).filename().replace_extension(".html").string() : output_;
    if (auto ok = not_an_input(file, traces_); !ok) return std::unexpected(ok.error());
    auto library = serve::Library::open(*places, false);
    if (!library) return std::unexpected(library.error());
    const std::shared_ptr<serve::Library> shared = std::move(*library);
    if (!say_what_is_wrong(*shared)) return 2;
    const auto report = serve::make_report(shared, {.budget = budget_});
    if (!report) return std::unexpected(report.error());
    if (auto ok = write_output(file, report->html); !ok) return std::unexpected(ok.error());
    fmt::print(stderr, "vramscope: {} ({}) opens in any browser, without a network\n", file,
               support::format_size(report->html.size()));
    if (report->left_out > 0)
      fmt::print(stderr, "vramscope: single events of long stretches are not in it: 'vramscope serve {}' has all\n",
                 traces_.front());
    return 0;
  }

 private:
  // A line for each trace that is not whole. False: there is none that can be read.
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
  std::uint64_t budget_ = 5'000'000;
};

const Register kVerb{{.name = "report",
                      .group = Group::answer,
                      .help = "write one HTML file that shows everything, without a server or a network",
                      .examples = "  vramscope report run.vram -o report.html\n"
                                  "  vramscope report before.vram after.vram -o compare.html\n",
                      .make = make<ReportVerb>}};

}  // namespace

}  // namespace vramscope::cli
