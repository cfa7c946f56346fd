#include <utility>

#include "cli/show/answer.h"
#include "cli/show/fit.h"

namespace vramscope::cli {

namespace {

class FitVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("runs", runs_, "recordings of one program at different batch sizes: .vram files or run folders");
    declare_device(arguments, request_);
    arguments.text(
        "--batches", batches_,
        "batch sizes of the recordings, or with --seq their sequence lengths, e.g. 8,16 (default: from their commands or shapes)",
        "N,N");
    arguments.count("--seq", request_.seq,
                    "forecast this sequence length, from recordings at three of them, instead of a batch size");
    arguments.text("--allocator", request_.allocator, "as for 'vramscope whatif' (default: that of the recording)", "NAME");
    arguments.text("--where", request_.where, kCompareWhereHelp, "FILTER");
    arguments.flag("--json", json_, kJsonHelp);
  }

  Result<int> run() override {
    auto batches = batches_in(batches_);
    if (!batches) return std::unexpected(batches.error());
    request_.batches = std::move(*batches);
    return show_fit(runs_, request_, json_);
  }

 private:
  std::vector<std::string> runs_;
  std::string batches_;
  analyze::FitRequest request_;
  bool json_ = false;
};

const Register kVerb{{.name = "fit",
                      .group = Group::answer,
                      .help = "find the largest batch that fits on a device, from recordings of smaller batches",
                      .examples = "  vramscope fit runs/batch8 runs/batch16 --on 24GiB\n"
                                  "  vramscope fit runs/batch8 runs/batch16 --on H100-80GB --batch 256\n"
                                  "  vramscope fit runs/batch32 --batches 32\n"
                                  "  vramscope fit runs/seq128 runs/seq256 runs/seq512 --seq 2048 --on 24GiB\n",
                      .make = make<FitVerb>}};

}  // namespace

}  // namespace vramscope::cli
