#include "analyze/index/index_cache.h"

#include <sys/random.h>
#include <unistd.h>

#include <string>

#include <fmt/format.h>

#include "analyze/index/index_check.h"

namespace vramscope::analyze {
namespace {

using support::CacheFolder;
using support::ChecksumKey;

constexpr const char* kKeyName = "key";
constexpr std::string_view kSuffix = ".index";

std::string name_of(const support::WideChecksum& content) {
  return fmt::format("{:016x}{:016x}{}", content[0], content[1], kSuffix);
}

std::optional<ChecksumKey> read_key(const CacheFolder& folder) {
  const support::OwnedFd file = folder.read(kKeyName);
  ChecksumKey key;
  char more = 0;
  if (!file || ::read(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()) ||
      ::read(file.get(), &more, 1) != 0)
    return std::nullopt;
  return key;
}

std::optional<ChecksumKey> make_key(const CacheFolder& folder) {
  ChecksumKey key;
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) return std::nullopt;
  const bool kept =
      folder.publish(kKeyName, [&](int fd) { return ::write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size()); });
  // Two first runs at the same time: both use the key that was stored first.
  return kept ? read_key(folder) : std::nullopt;
}

}  // namespace

std::optional<IndexCache> IndexCache::open(const std::filesystem::path& place) {
  auto folder = CacheFolder::open(place);
  if (!folder) return std::nullopt;
  auto key = read_key(*folder);
  if (!key) key = make_key(*folder);
  if (!key) return std::nullopt;
  return IndexCache(std::move(*folder), *key);
}

std::optional<Index> IndexCache::find(const trace::Reader& trace, unsigned threads) const {
  if (!trace.content()) return std::nullopt;
  support::OwnedFd file = folder_.read(name_of(*trace.content()));
  if (!file) return std::nullopt;
  CacheFolder::touch(file.get());
  auto index = Index::open(std::move(file), key_, *trace.content(), trace.memory_limit(), threads);
  if (!index || !makes_sense(*index, trace)) return std::nullopt;
  return std::move(*index);
}

void IndexCache::keep(const Index& index, const trace::Reader& trace, unsigned threads) const {
  if (!trace.content()) return;
  folder_.publish(name_of(*trace.content()), [&](int fd) { return index.save(fd, key_, *trace.content(), threads); });
  folder_.trim(kSuffix, kMostBytes);
}

}  // namespace vramscope::analyze
