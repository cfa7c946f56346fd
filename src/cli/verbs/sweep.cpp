#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/show/answer.h"
#include "cli/show/fit.h"

namespace vramscope::cli {

namespace {

constexpr std::string_view kPlace = "{batch}";

class SweepVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.text("-o,--output", output_, "folder for the recordings (default: vramscope-sweep)", "DIR");
    arguments.text("--batches", batches_, "batch sizes to record (default: 8,16)", "N,N");
    declare_device(arguments, request_);
    arguments.flag("--json", json_, kJsonHelp);
    arguments.command(command_, "command to record, with {batch} where the batch size belongs");
  }

  Result<int> run() override {
    if (std::ranges::none_of(command_, [](const std::string& word) { return word.contains(kPlace); }))
      return fail(
          "the command has no {batch}; write it where the batch size belongs, as in 'vramscope sweep -- python train.py --batch "
          "{batch}'");
    auto batches = batches_in(batches_);
    if (!batches) return std::unexpected(batches.error());
    request_.batches = std::move(*batches);
    // Before anything runs: recordings may take long.
    if (const Status valid = analyze::check_device(request_); !valid) return std::unexpected(valid.error());
    const auto runs = folders();
    if (!runs) return std::unexpected(runs.error());
    for (std::size_t i = 0; i < runs->size(); ++i) {
      if (const auto code = record(request_.batches[i], (*runs)[i]); code != 0) {
        fmt::print(stderr, "vramscope: the command failed with batch {}; there is no forecast\n", request_.batches[i]);
        return code;
      }
    }
    return show_fit(*runs, request_, json_);
  }

 private:
  // A new one for each batch.
  Result<std::vector<std::string>> folders() const {
    std::vector<std::string> out;
    for (const std::uint64_t batch : request_.batches) {
      std::string folder = (std::filesystem::path(output_) / fmt::format("batch-{}", batch)).string();
      if (std::ranges::find(out, folder) != out.end()) return fail(fmt::format("--batches: {} is listed twice", batch));
      if (std::filesystem::exists(folder)) return fail(fmt::format("{}: exists already; choose another folder with -o", folder));
      out.push_back(std::move(folder));
    }
    return out;
  }

  // `vramscope run` on the command, with its output on stderr: stdout is for the answer. Returns its exit code.
  int record(std::uint64_t batch, const std::string& folder) const {
    std::vector<std::string> words{"vramscope", "run", "--quiet", "-o", folder, "--"};
    for (std::string word : command_) {
      for (std::size_t at = 0; (at = word.find(kPlace, at)) != std::string::npos;)
        word.replace(at, kPlace.size(), std::to_string(batch));
      words.push_back(std::move(word));
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      dup2(STDERR_FILENO, STDOUT_FILENO);
      execv("/proc/self/exe", arguments.data());
      _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string output_ = "vramscope-sweep", batches_ = "8,16";
  std::vector<std::string> command_;
  analyze::FitRequest request_;
  bool json_ = false;
};

const Register kVerb{{.name = "sweep",
                      .group = Group::answer,
                      .help = "record a program at two small batch sizes, and find the largest batch that fits",
                      .examples = "  vramscope sweep --on 24GiB -- python train.py --batch {batch}\n",
                      .make = make<SweepVerb>}};

}  // namespace

}  // namespace vramscope::cli
