#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>

#include "analyze/api.h"
#include "cli/open_files.h"
#include "cli/run_folder.h"
#include "cli/source_root.h"
#include "cli/verb.h"
#include "serve/run_server.h"
#include "support/file.h"
#include "support/plain_file.h"
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

// In a file, because everybody on the machine can read the arguments of a program.
Result<std::string> read_token(const std::string& path) {
  if (path.empty()) return std::string();
  constexpr std::uint64_t kMostBytes = 4096;
  const auto file = support::read_plain_file(path, kMostBytes);
  if (!file) return fail(fmt::format("{}: cannot read the access token; pass a regular file that contains it", path));
  if (file->owner != geteuid() || !file->secret)
    return fail(fmt::format("{}: other users can read or change the access token; own the file and run 'chmod 600' on it", path));
  std::string token = file->bytes;
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0) token.pop_back();
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  if (token.size() < 16 || !std::ranges::all_of(token, plain))
    return fail(fmt::format("{}: invalid access token: expected at least 16 letters, digits, - and _", path));
  return token;
}

class ServeVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("traces", traces_, "traces (.vram) or run folders; ongoing recordings are followed");
    arguments.text("--host", host_, "address to listen on (default: this machine only)", "ADDRESS");
    arguments.count("--port", port_, "port to listen on (default: any free port)");
    arguments.text("--token-file", token_file_, "file with the access token, readable only by you (default: a random token)",
                   "FILE");
    arguments.text("--source-root", source_root_, kSourceRootHelp, "DIR");
  }

  Result<int> run() override {
    if (const Status ok = serve::check_port("--port", port_); !ok) return std::unexpected(ok.error());
    const auto token = read_token(token_file_);
    if (!token) return std::unexpected(token.error());
    auto root = open_source_root(source_root_);
    if (!root) return std::unexpected(root.error());
    const auto places = places_of(traces_);
    if (!places) return std::unexpected(places.error());
    if (const Status ok = allow_open_files(*places); !ok) return std::unexpected(ok.error());
    auto library = serve::Library::open(*places, true);
    if (!library) return std::unexpected(library.error());
    const std::shared_ptr<serve::Library> shared = std::move(*library);
    if (*root) shared->set_source_root(std::move(**root));
    if (shared->size() == 0)
      if (const auto found = analyze::traces_in(places->front()); !found) return std::unexpected(found.error());
    if (const Status ok = something_to_see(*shared, *places); !ok) return std::unexpected(ok.error());
    auto running = serve::RunningServer::start(
        shared, {.host = host_, .port = static_cast<std::uint16_t>(port_), .token = *token, .port_option = "--port"});
    if (!running) return std::unexpected(running.error());
    g_running = running->get();
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    fmt::print("{}\n", (*running)->address());
    std::fflush(stdout);
    if (host_ != "127.0.0.1" && host_ != "localhost" && host_ != "::1")
      fmt::print(
          stderr,
          "vramscope: reachable from other machines without encryption: anyone who has the address with its token can read "
          "the traces\n");
    (*running)->wait();
    g_running = nullptr;
    return 0;
  }

 private:
  // Files that are not traces will never show anything. A damaged trace is served together with what is wrong with it, and so is
  // a folder: it may contain a trace that has just been started.
  static Status something_to_see(const serve::Library& library, const std::vector<std::string>& places) {
    for (const std::string& place : places)
      if (std::filesystem::is_directory(place) || begins_like_a_trace(place)) return {};
    return fail(library.trace(0).error().message);
  }

  std::vector<std::string> traces_;
  std::string host_ = "127.0.0.1";
  std::string token_file_;
  std::string source_root_;
  std::uint64_t port_ = 0;
};

const Register kVerb{{.name = "serve",
                      .group = Group::answer,
                      .help = "view traces in a browser, even while they are being recorded",
                      .examples = "  vramscope serve run.vram\n"
                                  "  vramscope serve vramscope-runs/latest\n"
                                  "  vramscope serve before.vram after.vram   (compares them under Diff)\n",
                      .make = make<ServeVerb>}};

}  // namespace

}  // namespace vramscope::cli
