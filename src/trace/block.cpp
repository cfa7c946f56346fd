#include "trace/block.h"

#include <array>
#include <cstring>
#include <utility>

#include "support/compress.h"

namespace vramscope::trace {
namespace {

using support::Buffer;
using support::ByteReader;
using support::ByteSpan;
using support::put_fixed;

// A high bit, both line endings and an end-of-file character: a transfer that changes text is detected at the first byte.
constexpr std::array<std::uint8_t, 8> kFileMagic = {0x89, 'V', 'R', 'A', 'M', '\r', '\n', 0x1a};
constexpr std::array<std::uint8_t, 8> kTrailerMagic = {'V', 'R', 'A', 'M', 'E', 'N', 'D', '\n'};
constexpr std::uint32_t kBlockMagic = 0x4b4c4256;  // "VBLK"

// Dictionaries stay in memory, so a small file must not be able to require a lot of it. Chunks of events are read one at a
// time.
bool ratio_allowed(std::uint8_t type, std::size_t stored, std::size_t raw) {
  return type != std::to_underlying(BlockType::dictionary) || raw / kMaxRatio <= stored;
}

}  // namespace

void put_header(Buffer& out, const FileHeader& header) {
  const std::size_t at = out.size();
  support::put_bytes(out, kFileMagic);
  put_fixed(out, header.major);
  put_fixed(out, header.minor);
  put_fixed(out, std::uint32_t{kHeaderBytes});
  put_fixed(out, header.start_realtime_us);
  put_fixed(out, std::uint64_t{0});
  put_fixed(out, support::checksum(ByteSpan(out).subspan(at)));
}

HeaderFault take_header(ByteSpan bytes, FileHeader& header) {
  if (bytes.size() < kFileMagic.size() || std::memcmp(bytes.data(), kFileMagic.data(), kFileMagic.size()) != 0)
    return HeaderFault::foreign;
  ByteReader reader(bytes.subspan(kFileMagic.size()));
  header.major = reader.fixed<std::uint16_t>();
  header.minor = reader.fixed<std::uint16_t>();
  reader.fixed<std::uint32_t>();
  header.start_realtime_us = reader.fixed<std::uint64_t>();
  reader.fixed<std::uint64_t>();
  const auto sum = reader.fixed<std::uint64_t>();
  if (reader.failed() || sum != support::checksum(bytes.first(kHeaderBytes - sizeof(sum)))) return HeaderFault::damaged;
  return HeaderFault::none;
}

void put_block(Buffer& out, BlockHead head, ByteSpan raw, int zstd_level) {
  Buffer packed;
  const bool smaller = support::compress(raw, zstd_level, packed) && packed.size() < raw.size() &&
                       ratio_allowed(head.type, packed.size(), raw.size());
  const ByteSpan stored = smaller ? ByteSpan(packed) : raw;
  const std::size_t at = out.size();
  put_fixed(out, kBlockMagic);
  put_fixed(out, head.type);
  put_fixed(out, std::to_underlying(smaller ? Codec::zstd : Codec::none));
  put_fixed(out, head.flags);
  put_fixed(out, static_cast<std::uint32_t>(stored.size()));
  put_fixed(out, static_cast<std::uint32_t>(raw.size()));
  put_fixed(out, head.first_event);
  put_fixed(out, head.first_alloc);
  put_fixed(out, head.events);
  put_fixed(out, head.allocs);
  put_fixed(out, support::checksum(stored));
  put_fixed(out, support::checksum(ByteSpan(out).subspan(at)));
  support::put_bytes(out, stored);
}

std::optional<BlockHead> take_block_head(ByteSpan bytes) {
  if (bytes.size() < kBlockHeadBytes) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.fixed<std::uint32_t>() != kBlockMagic) return std::nullopt;
  BlockHead head;
  head.type = reader.fixed<std::uint8_t>();
  head.codec = reader.fixed<std::uint8_t>();
  head.flags = reader.fixed<std::uint16_t>();
  head.stored_bytes = reader.fixed<std::uint32_t>();
  head.raw_bytes = reader.fixed<std::uint32_t>();
  head.first_event = reader.fixed<std::uint64_t>();
  head.first_alloc = reader.fixed<std::uint64_t>();
  head.events = reader.fixed<std::uint32_t>();
  head.allocs = reader.fixed<std::uint32_t>();
  head.payload_checksum = reader.fixed<std::uint64_t>();
  if (reader.fixed<std::uint64_t>() != support::checksum(bytes.first(kBlockHeadBytes - sizeof(std::uint64_t))))
    return std::nullopt;
  return head;
}

std::optional<Buffer> open_payload(const BlockHead& head, ByteSpan stored) {
  if (stored.size() != head.stored_bytes || head.raw_bytes > kMaxRawBytes) return std::nullopt;
  if (!ratio_allowed(head.type, head.stored_bytes, head.raw_bytes)) return std::nullopt;
  if (support::checksum(stored) != head.payload_checksum) return std::nullopt;
  if (head.codec == std::to_underlying(Codec::none)) {
    if (head.raw_bytes != head.stored_bytes) return std::nullopt;
    return Buffer(stored.begin(), stored.end());
  }
  if (head.codec != std::to_underlying(Codec::zstd)) return std::nullopt;
  Buffer raw(head.raw_bytes);
  if (!support::decompress(stored, raw)) return std::nullopt;
  return raw;
}

void put_trailer(Buffer& out, std::uint64_t footer_offset) {
  put_fixed(out, footer_offset);
  support::put_bytes(out, kTrailerMagic);
}

std::optional<std::uint64_t> take_trailer(ByteSpan bytes) {
  if (bytes.size() != kTrailerBytes) return std::nullopt;
  ByteReader reader(bytes);
  const auto offset = reader.fixed<std::uint64_t>();
  if (std::memcmp(bytes.data() + sizeof(offset), kTrailerMagic.data(), kTrailerMagic.size()) != 0) return std::nullopt;
  return offset;
}

}  // namespace vramscope::trace
