#include <fmt/format.h>

#include <filesystem>

#include "analyze/api.h"
#include "cli/run/leftover.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"
#include "collect/recover.h"
#include "collect/spool/spool_folder.h"

namespace vramscope::cli {

namespace {

class RecoverVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { arguments.operand("folder", folder_, "run folder, or its spool folder"); }

  Result<int> run() override {
    std::error_code error;
    if (!std::filesystem::is_directory(folder_, error)) return fail(fmt::format("{}: no such folder", folder_));
    const Leftovers leftovers = find_leftovers(folder_);
    if (leftovers.found.empty() && leftovers.remarks.empty())
      return fail(fmt::format("{}: nothing to recover; every recording finished normally", folder_));
    std::size_t traces = 0;
    std::size_t remarks = tell(leftovers.remarks);
    bool unfinished = false;
    for (const Leftover& leftover : leftovers.found) {
      const auto result = finish(leftover);
      if (!result) {
        remarks += tell({result.error().message});
        continue;
      }
      for (const auto& trace : result->traces) show(trace);
      traces += result->traces.size();
      remarks += tell(result->remarks);
      unfinished |= result->unfinished;
    }
    if (traces == 0 && remarks == 0) fmt::print("The traces were already complete.\n");
    return unfinished || (remarks > 0 && traces == 0) ? 2 : 0;
  }

 private:
  static std::size_t tell(const std::vector<std::string>& remarks) {
    for (const std::string& remark : remarks) fmt::print(stderr, "vramscope: {}\n", printable(remark));
    return remarks.size();
  }

  static Result<collect::Recovered> finish(const Leftover& leftover) {
    collect::CollectOptions options = leftover.options;
    options.say = [](const std::string& text) { fmt::print(stderr, "{}", printable_lines(text)); };
    auto result = collect::recover(leftover.spool, options);
    if (!result || !result->remarks.empty()) return result;
    if (!leftover.spool.remove(collect::is_spool_file))
      result->remarks.push_back(
          fmt::format("{}: contains files that vramscope did not create; the folder was kept", leftover.spool.path().string()));
    else if (!leftover.link.empty())
      support::remove_own_link(leftover.link);
    return result;
  }

  static void show(const collect::TraceInfo& trace) {
    const auto summary = analyze::summarize(trace.path.string());
    fmt::print("{}: {}\n", printable(trace.path.string()), in_a_sentence(summary ? summary->sentence : summary.error().message));
  }

  std::string folder_;
};

const Register kVerb{{.name = "recover",
                      .group = Group::record,
                      .help = "finish the traces of a recording that was killed",
                      .examples = "  vramscope recover vramscope-runs/latest\n"
                                  "  vramscope recover /dev/shm/vramscope-a1b2c3\n",
                      .make = make<RecoverVerb>}};

}  // namespace

}  // namespace vramscope::cli
