#include "cli/live_page.h"

#include <chrono>
#include <thread>

#include "serve/run_server.h"

namespace vramscope::cli {

namespace {

// A page asks for what it shows within this time; without an open page nobody waits.
constexpr auto kLastLook = std::chrono::milliseconds(3000);

}  // namespace

LivePage::LivePage() = default;
LivePage::LivePage(LivePage&&) noexcept = default;
LivePage& LivePage::operator=(LivePage&&) noexcept = default;
LivePage::~LivePage() = default;

Result<LivePage> LivePage::start(const std::filesystem::path& folder, std::uint16_t port) {
  LivePage page;
  auto library = serve::Library::open({folder.string()}, true);
  if (!library) return std::unexpected(library.error());
  page.library_ = std::move(*library);
  page.library_->set_recording(true);
  auto server = serve::RunningServer::start(page.library_, {.host = "127.0.0.1", .port = port, .token = {}});
  if (!server) return std::unexpected(server.error());
  page.server_ = std::move(*server);
  return page;
}

const std::string& LivePage::address() const { return server_->address(); }

void LivePage::ended() {
  library_->refresh();
  library_->set_recording(false);
  if (server_->watched()) std::this_thread::sleep_for(kLastLook);
  server_->stop();
}

}  // namespace vramscope::cli
