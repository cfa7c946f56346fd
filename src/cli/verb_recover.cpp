#include <fmt/format.h>

#include <filesystem>

#include "analyze/summary.h"
#include "cli/recording.h"
#include "cli/summary_text.h"
#include "cli/verb.h"
#include "collect/recover.h"

namespace vramscope::cli {

namespace {

namespace fs = std::filesystem;

struct Leftover {
  fs::path spool;
  fs::path output;
  fs::path link;  // in the output folder; empty if the spool itself was named
};

bool holds_spools(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".spool") return true;
  return false;
}

std::vector<Leftover> find_leftovers(const fs::path& folder) {
  std::error_code error;
  std::vector<Leftover> found;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_symlink(error) && entry.path().filename().string().starts_with(".spool-"))
      found.push_back({fs::read_symlink(entry.path(), error), fs::absolute(folder), entry.path()});
  if (found.empty() && holds_spools(folder)) {
    const fs::path output = fs::read_symlink(folder / kRunLink, error);
    found.push_back({fs::absolute(folder), error ? fs::current_path() : output, {}});
  }
  return found;
}

class RecoverVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { arguments.operand("folder", folder_, "the run's folder, or its spool folder"); }

  Result<int> run() override {
    std::error_code error;
    if (!fs::is_directory(folder_, error)) return fail(fmt::format("{}: no such folder", folder_));
    const auto leftovers = find_leftovers(folder_);
    if (leftovers.empty()) return fail(fmt::format("{}: nothing to recover; its recordings ended by themselves", folder_));
    std::size_t traces = 0;
    std::size_t remarks = 0;
    for (const Leftover& leftover : leftovers) {
      if (!fs::is_directory(leftover.spool, error)) {
        fmt::print(
            stderr,
            "vramscope: {}: the spool is gone (it does not outlive a restart of the machine); the trace ends where it ends\n",
            leftover.spool.string());
        fs::remove(leftover.link, error);
        ++remarks;
        continue;
      }
      collect::CollectOptions options = stored_options(leftover.spool);
      options.output = leftover.output;
      options.spool_folder = leftover.spool;
      options.say = [](const std::string& text) { fmt::print(stderr, "{}", text); };
      const auto result = collect::recover(options);
      if (!result) return std::unexpected(result.error());
      for (const auto& trace : result->traces) show(trace);
      for (const std::string& remark : result->remarks) fmt::print(stderr, "vramscope: {}\n", remark);
      traces += result->traces.size();
      remarks += result->remarks.size();
      if (!result->remarks.empty()) continue;
      fs::remove_all(leftover.spool, error);
      if (!leftover.link.empty()) fs::remove(leftover.link, error);
    }
    if (traces == 0 && remarks == 0) fmt::print("Nothing was left that is not in the traces.\n");
    return remarks > 0 && traces == 0 ? 2 : 0;
  }

 private:
  static void show(const collect::TraceInfo& trace) {
    const auto summary = analyze::summarize(trace.path.string());
    fmt::print("{}: {}\n", trace.path.string(), summary ? summary_sentence(*summary) : summary.error().message);
  }

  std::string folder_;
};

const Register kVerb{{.name = "recover",
                      .group = Group::record,
                      .help = "finish traces when the recording itself was killed",
                      .examples = "  vramscope recover vramscope-runs/latest\n"
                                  "  vramscope recover /dev/shm/vramscope-a1b2c3\n",
                      .make = make<RecoverVerb>}};

}  // namespace

}  // namespace vramscope::cli
