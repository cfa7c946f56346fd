#include <cstdio>

#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/run_folder.h"
#include "cli/verb.h"
#include "trace/dump.h"

namespace vramscope::cli {

namespace {

class DumpVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", place_, "a .vram file, or a folder with one");
    arguments.flag("--jsonl", jsonl_, "one JSON object a line");
    arguments.flag("--no-stacks", no_stacks_, "without the frames of allocations");
  }

  Result<int> run() override {
    const auto traces = traces_of(place_);
    if (!traces) return std::unexpected(traces.error());
    if (traces->size() > 1)
      return fail(fmt::format("{}: {} traces in this folder; name one of them, such as {}", place_, traces->size(),
                              traces->front().string()));
    auto reader = trace::Reader::open(traces->front());
    if (!reader) return std::unexpected(reader.error());
    if (reader->events() == 0 && reader->damage().message.empty()) return no_event(traces->front());
    const Status status = trace::dump(*reader, {.jsonl = jsonl_, .stacks = !no_stacks_}, stdout);
    // What could be read has been shown; scripts must still see that it is not all.
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
                      .help = "the events of a trace, one a line",
                      .examples = "  vramscope dump run.vram | head\n"
                                  "  vramscope dump --jsonl run.vram | jq 'select(.event == \"oom\")'\n",
                      .make = make<DumpVerb>}};

}  // namespace

}  // namespace vramscope::cli
