#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "cli/run_folder.h"
#include "cli/verb.h"
#include "serve/run_server.h"
#include "support/file.h"
#include "trace/block.h"

namespace vramscope::cli {

namespace {

serve::RunningServer* g_running = nullptr;

void on_signal(int) {
  if (g_running != nullptr) g_running->http().stop();
}

bool begins_like_a_trace(const std::string& path) {
  const auto file = support::ReadFile::open(path);
  if (!file || file->size() == 0) return false;
  support::Buffer bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), trace::kHeaderBytes)));
  trace::FileHeader header;
  return file->read(0, bytes) && trace::take_header(bytes, header) != trace::HeaderFault::foreign;
}

class ServeVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("traces", traces_, "traces (.vram) or run folders; a recording that is still going on is followed");
    arguments.text("--host", host_, "address to listen on (default: this machine only)", "ADDRESS");
    arguments.count("--port", port_, "port (default: a free one)");
    arguments.text("--token", token_, "access token (default: a random one)");
  }

  Result<int> run() override {
    if (port_ > 65535) return fail("--port takes a number up to 65535");
    if (!token_.empty() && token_.size() < 16)
      return fail("--token needs at least 16 characters: whoever has it sees the traces");
    const auto places = places_of(traces_);
    if (!places) return std::unexpected(places.error());
    auto library = serve::Library::open(*places, true);
    if (!library) return std::unexpected(library.error());
    const std::shared_ptr<serve::Library> shared = std::move(*library);
    if (shared->size() == 0)
      return fail(fmt::format("there is no trace in {}; record one with 'vramscope run -- python train.py'", traces_.front()));
    if (const Status ok = something_to_see(*shared, *places); !ok) return std::unexpected(ok.error());
    auto running =
        serve::RunningServer::start(shared, {.host = host_, .port = static_cast<std::uint16_t>(port_), .token = token_});
    if (!running) return std::unexpected(running.error());
    g_running = running->get();
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    fmt::print("{}\n", (*running)->address());
    std::fflush(stdout);
    if (host_ != "127.0.0.1" && host_ != "localhost" && host_ != "::1")
      fmt::print(stderr,
                 "vramscope: reachable from other machines, without encryption: whoever has the address with its token can read "
                 "the traces\n");
    (*running)->wait();
    g_running = nullptr;
    return 0;
  }

 private:
  // Files that are no traces show nothing and never will. A damaged trace is served with what is wrong with it, and so is a
  // folder: a trace that is just being begun may be in it.
  static Status something_to_see(const serve::Library& library, const std::vector<std::string>& places) {
    for (const std::string& place : places)
      if (std::filesystem::is_directory(place) || begins_like_a_trace(place)) return {};
    return fail(library.trace(0).error().message);
  }

  std::vector<std::string> traces_;
  std::string host_ = "127.0.0.1";
  std::string token_;
  std::uint64_t port_ = 0;
};

const Register kVerb{{.name = "serve",
                      .group = Group::answer,
                      .help = "look at traces in a browser, also while they are recorded",
                      .examples = "  vramscope serve run.vram\n"
                                  "  vramscope serve vramscope-runs/latest\n"
                                  "  vramscope serve before.vram after.vram   compares them under Diff\n",
                      .make = make<ServeVerb>}};

}  // namespace

}  // namespace vramscope::cli
