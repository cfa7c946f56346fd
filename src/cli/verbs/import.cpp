#include <fmt/format.h>

#include <filesystem>

#include "cli/run/memory_limit.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"
#include "importers/importer.h"
#include "support/fresh_file.h"
#include "support/owned_folder.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class ImportVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("file", file_, "a profile of another tool; its format is recognized by its content");
    arguments.text("-o,--output", output_, "trace to create, which must not exist (default: the file's name with .vram)", "FILE");
  }

  Result<int> run() override {
    namespace fs = std::filesystem;
    const fs::path output = output_.empty() ? fs::path(file_).filename().replace_extension(".vram") : fs::path(output_);
    if (output == "-") return fail("a trace cannot be written to the standard output; name a file with -o");
    std::error_code error;
    if (fs::exists(fs::symlink_status(output, error))) return support::exists_already(output);
    limit_memory(std::array{fs::path(file_)});
    // The writer puts files of its own next to the trace, so that it gets a folder of its own until it is complete.
    const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
    auto folder = support::OwnedFolder::create(parent, ".vramscope-import-");
    if (!folder) return support::cannot_create(output, "");
    const fs::path fresh = folder->path() / "trace.vram";
    Status status = importers::import_file(file_, fresh);
    if (status && !support::rename_to_new(fresh, output)) status = support::exists_already(output);
    folder->remove([](std::string_view) { return true; });
    if (!status) return std::unexpected(status.error());
    const auto engine = analyze::Engine::open(output);
    if (!engine) return std::unexpected(engine.error());
    const analyze::Overview overview = engine->overview();
    fmt::print(stderr, "vramscope: {}: {} and {}\n", printable(output.string()),
               support::format_plural(overview.allocs, "allocation", "allocations"),
               support::format_plural(overview.frees, "free", "frees"));
    say_source(overview);
    return 0;
  }

 private:
  std::string file_, output_;
};

const Register kVerb{{.name = "import",
                      .group = Group::inspect,
                      .help = "turn another tool's profile into a trace; every verb also opens such a file directly",
                      .examples = "  vramscope import snapshot.pickle -o snapshot.vram\n"
                                  "  vramscope import logs/plugins/profile/run/host.xplane.pb -o run.vram\n"
                                  "  vramscope peak snapshot.pickle\n",
                      .make = make<ImportVerb>}};

}  // namespace

}  // namespace vramscope::cli
