#include "support/compress.h"

#include <zstd.h>

#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vramscope::support {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

bool compress(ByteSpan bytes, int level, Buffer& out) {
  // A context takes several hundred KiB, and setting it up takes about as long as a chunk: one per thread.
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return false;
  const std::size_t at = out.size();
  out.resize(at + ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compressCCtx(context.get(), out.data() + at, out.size() - at, bytes.data(), bytes.size(), level);
  const bool done = !ZSTD_isError(size);
  out.resize(at + (done ? size : 0));
  return done;
}

bool decompress(ByteSpan bytes, std::span<std::uint8_t> into) {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) return false;
  const std::size_t size = ZSTD_decompressDCtx(context.get(), into.data(), into.size(), bytes.data(), bytes.size());
  return !ZSTD_isError(size) && size == into.size();
}

std::uint64_t checksum(ByteSpan bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t checksum(ByteSpan bytes, const ChecksumKey& key) {
  static_assert(sizeof(ChecksumKey) >= XXH3_SECRET_SIZE_MIN);
  return XXH3_64bits_withSecret(bytes.data(), bytes.size(), key.data(), key.size());
}

WideChecksum wide_checksum(ByteSpan bytes, const ChecksumKey& key) {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(bytes.data(), bytes.size(), key.data(), key.size());
  return {hash.high64, hash.low64};
}

}  // namespace vramscope::support
