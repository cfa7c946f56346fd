// Keeps a trace below a number of bytes (--trace-limit): the first chunks, the last ones and the one in which each pool peaked
// keep their detail, the others are thinned.
//
// A chunk is thinned while it is still in memory, and the result, a few percent of it, is kept, so that making room is a copy
// of the file and not a second pass over all events.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "support/file.h"
#include "support/result.h"
#include "trace/footer.h"
#include "trace/thin.h"

namespace vramscope::trace {

class TraceLimit {
 public:
  TraceLimit(std::filesystem::path path, std::uint64_t bytes, int zstd_level)
      : path_(std::move(path)), limit_(bytes), next_(bytes), zstd_level_(zstd_level) {}

  // The blocks of the file, in order. Chunks come with what is needed to thin them later.
  void wrote(const IndexEntry& block);
  void wrote(const IndexEntry& block, const Chunk& chunk, std::span<const Peak> peaks, std::span<const Site> sites);

  // True if the file should be made smaller.
  bool due(std::uint64_t bytes) const { return bytes > next_; }

  struct Rewritten {
    std::unique_ptr<support::AppendFile> file;
    std::vector<IndexEntry> index;
  };
  // Writes the thinned file next to the old one and replaces it atomically: a reader finds one or the other, complete, even
  // after a crash. After an error, the old file is unchanged and may grow by a quarter before the next attempt.
  Result<Rewritten> rewrite(const Dictionaries& all);

 private:
  struct Block {
    IndexEntry place;  // in the file
    Detail detail = Detail::full;
    support::Buffer thinned;  // full chunks: the block that can replace it; empty if there is none
    std::vector<Peak> peaks;  // chunks: highest bytes of each pool
    support::Buffer bytes;    // only while rewriting: what replaces it
    std::uint64_t size() const { return bytes.empty() ? kBlockHeadBytes + std::uint64_t{place.head.stored_bytes} : bytes.size(); }
    bool is_chunk() const { return place.head.type == std::uint8_t{2}; }
  };
  struct Share {
    std::uint64_t first;  // one part in `first` of the limit for the first chunks, one in `last` for the last ones
    std::uint64_t last;
  };

  std::vector<bool> kept(Share share) const;
  std::vector<Block> thinned(Share share) const;
  Result<std::vector<Block>> merged(std::vector<Block> blocks, const std::vector<bool>& keep, const Dictionaries& all,
                                    Detail detail, const support::ReadFile& file) const;
  Result<Rewritten> write(std::vector<Block> blocks, const support::ReadFile& file);

  std::filesystem::path path_;
  std::uint64_t limit_;
  std::uint64_t next_;  // size at which to thin again
  int zstd_level_;
  std::vector<Block> blocks_;
};

}  // namespace vramscope::trace
