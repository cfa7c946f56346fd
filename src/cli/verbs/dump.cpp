#include <cstdio>

#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "cli/verb.h"
#include "trace/dump.h"

namespace vramscope::cli {

namespace {

class DumpVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", place_, kOneTraceHelp);
    arguments.flag("--jsonl", jsonl_, "print one JSON object per line");
    arguments.flag("--no-stacks", no_stacks_, "omit stack frames");
  }

  Result<int> run() override {
    const auto file = only_trace_of(place_);
    if (!file) return std::unexpected(file.error());
    auto reader = trace::Reader::open(*file);
    if (!reader) return std::unexpected(reader.error());
    if (reader->events() == 0 && reader->damage().message.empty()) return no_event(*file);
    const Status status = trace::dump(*reader, {.jsonl = jsonl_, .stacks = !no_stacks_}, stdout);
    // What could be read has been printed; scripts must still see that it is not all.
    if (!status) return std::unexpected(status.error());
    say_damage(reader->path(), reader->damage().message);
    return 0;
  }

 private:
  std::string place_;
  bool jsonl_ = false;
  bool no_stacks_ = false;
};

const Register kVerb{{.name = "dump",
                      .group = Group::inspect,
                      .help = "print the events of a trace, one per line",
                      .examples = "  vramscope dump run.vram | head\n"
                                  "  vramscope dump --jsonl run.vram | jq 'select(.event == \"oom\")'\n",
                      .make = make<DumpVerb>}};

}  // namespace

}  // namespace vramscope::cli
