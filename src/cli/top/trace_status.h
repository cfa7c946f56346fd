// What the growing trace shows: steps, phase, growth, what the peak consists of. Analyzed occasionally on a separate thread, so
// that the screen never waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

namespace vramscope::cli::top {

struct Process;

class TraceStatus {
 public:
  TraceStatus();
  ~TraceStatus();
  // Adds the newest answer to `process`, and starts a new analysis if it is time.
  void fill(Process& process, const std::filesystem::path& spool_folder, std::uint64_t now_us);
  // Returns when no analysis is running.
  void wait() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace vramscope::cli::top
