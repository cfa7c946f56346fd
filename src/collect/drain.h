// Takes records out of the segments of a spool while the process goes on writing.
//
// A segment that a thread owns is read in place, up to what the thread has published; a sealed one is taken (reading), read,
// and kept until everything in it is stored for good, so that nothing is lost when the collector dies as well. Only then it
// goes back to the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "collect/spool_file.h"

namespace vramscope::collect {

class Drain {
 public:
  // A whole record in memory of our own. The span holds all its slots.
  using Sink = std::function<void(std::uint32_t thread, const spool::RecordHead& head, std::span<const std::byte> record)>;

  // One pass over all segments. The number of records taken.
  std::size_t pass(SpoolFile& spool, const Sink& sink);
  // Gives back every segment we hold whose events all have numbers below `stored`.
  void give_back(SpoolFile& spool, std::uint64_t stored);
  // Takes segments whose thread is gone; nobody else would ever seal them.
  void reclaim(SpoolFile& spool, const std::function<bool(std::uint32_t)>& thread_lives);

  std::size_t held() const { return held_; }
  std::size_t owned() const { return owned_; }  // by threads, at the last pass
  // Records that could not be made out. 0 unless something wrote into the spool that should not have.
  std::uint64_t damaged() const { return damaged_; }

 private:
  struct Seen {
    std::uint64_t generation = 0;
    std::uint64_t last_seq = 0;  // highest in it
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
