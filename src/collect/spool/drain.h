// Takes records out of the segments of a spool while the process continues to write.
//
// A segment that a thread owns is read in place, up to what the thread has published. A sealed one is taken (reading), read,
// and kept until everything in it is stored for good, so that nothing is lost if the collector dies as well. Only then does it
// go back to the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "collect/spool/spool_file.h"

namespace vramscope::collect {

class Drain {
 public:
  // A complete record in our own memory. The span contains all its slots.
  using Sink = std::function<void(std::uint32_t thread, const spool::RecordHead& head, std::span<const std::byte> record)>;

  // One pass over all segments. Returns the number of records taken.
  std::size_t pass(SpoolFile& spool, const Sink& sink);
  // Returns every segment we hold whose events all have numbers below `stored`.
  void give_back(SpoolFile& spool, std::uint64_t stored);
  // Takes segments of threads that have exited; nothing else would ever seal them.
  void reclaim(SpoolFile& spool, const std::function<bool(std::uint32_t)>& thread_lives);

  std::size_t held() const { return held_; }
  std::size_t owned() const { return owned_; }  // segments owned by threads, at the last pass
  // Records that could not be decoded. 0 unless something else wrote into the spool.
  std::uint64_t damaged() const { return damaged_; }

 private:
  struct Seen {
    std::uint64_t generation = 0;
    std::uint64_t last_seq = 0;  // highest number in it
    std::uint32_t consumed = 0;
    bool held = false;
  };

  std::size_t read(SpoolFile& spool, std::uint32_t index, const Sink& sink);
  bool hold(SpoolFile& spool, std::uint32_t index);
  bool copy_new(spool::SegmentHeader* segment, Seen& seen, std::uint32_t& thread);
  std::size_t parse(std::uint32_t thread, Seen& seen, const Sink& sink);

  std::vector<Seen> seen_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> full_;  // age and index of what this pass takes
  std::vector<std::byte> copy_;
  std::size_t held_ = 0;
  std::size_t owned_ = 0;
  std::uint64_t damaged_ = 0;
};

}  // namespace vramscope::collect
