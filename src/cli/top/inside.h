// What the trace says that is being written: steps, phase, growth, what the peak is made of. Looked at now and then, on its own
// thread, so that the screen never waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

namespace vramscope::cli::top {

struct Process;

class Inside {
 public:
  Inside();
  ~Inside();
  // Adds the newest answer to `process`, and starts looking for a newer one if it is time.
  void fill(Process& process, const std::filesystem::path& spool_folder, std::uint64_t now_us);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace vramscope::cli::top
