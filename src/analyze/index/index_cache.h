// Indexes of traces in the user's own cache folder, and the key that proves that this user wrote them.
#pragma once

#include <filesystem>
#include <optional>

#include "analyze/index/index_file.h"
#include "support/cache_folder.h"
#include "trace/reader.h"

namespace vramscope::analyze {

class IndexCache {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{4}
                                              << 30;  // of all indexes together; least recently used ones are removed

  // Nothing if there is no folder that only this user can write to.
  static std::optional<IndexCache> open(const std::filesystem::path& place);

  // A trace must be opened with it, or it has no index.
  const support::ChecksumKey& key() const { return key_; }
  std::optional<Index> find(const trace::Reader& trace, unsigned threads) const;
  // Does nothing if there is no room.
  void keep(const Index& index, const trace::Reader& trace, unsigned threads) const;

 private:
  IndexCache(support::CacheFolder folder, const support::ChecksumKey& key) : folder_(std::move(folder)), key_(key) {}
  support::CacheFolder folder_;
  support::ChecksumKey key_;
};

}  // namespace vramscope::analyze
