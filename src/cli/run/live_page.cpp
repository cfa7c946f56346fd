#include "cli/run/live_page.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "cli/no_thread.h"
#include "serve/run_server.h"

namespace vramscope::cli {

namespace {

// A page requests what it shows within this time; without an open page, nothing waits.
constexpr auto kTimeForLastRequests = std::chrono::milliseconds(3000);

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
  try {
    auto server = serve::RunningServer::start(page.library_,
                                              {.host = "127.0.0.1", .port = port, .token = {}, .port_option = "--live-port"});
    if (!server) return std::unexpected(server.error());
    page.server_ = std::move(*server);
  } catch (const std::system_error& error) {  // cannot start a thread
    return no_thread(error);
  }
  return page;
}

const std::string& LivePage::address() const { return server_->address(); }

void LivePage::ended() {
  library_->refresh();
  library_->set_recording(false);
  if (server_->watched()) std::this_thread::sleep_for(kTimeForLastRequests);
  server_->stop();
}

}  // namespace vramscope::cli
