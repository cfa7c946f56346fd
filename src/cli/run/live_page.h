// The page of `run --live`: serves the run folder while it is written, and for a moment after.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "support/result.h"

namespace vramscope::serve {
class Library;
class RunningServer;
}  // namespace vramscope::serve

namespace vramscope::cli {

class LivePage {
 public:
  static Result<LivePage> start(const std::filesystem::path& folder, std::uint16_t port);
  LivePage(LivePage&&) noexcept;
  LivePage& operator=(LivePage&&) noexcept;
  ~LivePage();

  const std::string& address() const;
  // The recording has ended: open pages get all of it before the server exits.
  void ended();

 private:
  LivePage();
  std::shared_ptr<serve::Library> library_;
  std::unique_ptr<serve::RunningServer> server_;
};

}  // namespace vramscope::cli
