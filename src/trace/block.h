// The frame around everything in a .vram file after its header: its type, its length, and whether it is complete.
#pragma once

#include <cstdint>
#include <optional>

#include "support/bytes.h"

namespace vramscope::trace {

inline constexpr std::size_t kHeaderBytes = 40;
inline constexpr std::size_t kBlockHeadBytes = 56;
inline constexpr std::size_t kTrailerBytes = 16;
inline constexpr std::uint32_t kMaxRawBytes = 16u << 20;  // of one block, decompressed
inline constexpr std::uint32_t kMaxChunkEvents = 64u << 10;
inline constexpr std::uint32_t kMaxRatio = 64;  // raw to stored bytes of a dictionary block
inline constexpr std::size_t kMaxStringBytes = 64u << 10;
inline constexpr std::size_t kMaxEntries = 16u << 20;  // of one dictionary
inline constexpr std::size_t kMaxPools = 250;          // a process has at most 64; readers count places in a byte

// Why a block cannot be used.
inline constexpr const char* kTooManyEvents = "it has more events than the format allows";
inline constexpr const char* kCannotReadBack = "cannot read back a block of the trace";

struct FileHeader {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint64_t start_realtime_us = 0;
};
void put_header(support::Buffer& out, const FileHeader& header);
// Why the first bytes of a file are not a header of ours.
enum class HeaderFault { none, foreign, damaged };
HeaderFault take_header(support::ByteSpan bytes, FileHeader& header);

enum class BlockType : std::uint8_t { dictionary = 1, events = 2, footer = 3 };
enum class Codec : std::uint8_t { none = 0, zstd = 1 };
inline constexpr std::uint16_t kThinned = 1;  // BlockHead::flags: pairs were omitted, alloc ordinals are listed

struct BlockHead {
  std::uint8_t type = 0;  // BlockType, or one of a newer minor version, to be skipped
  std::uint8_t codec = 0;
  std::uint16_t flags = 0;
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  std::uint64_t first_event = 0;  // events only: events before it in the recording
  std::uint64_t first_alloc = 0;  // events only: alloc events before it in the recording
  std::uint32_t events = 0;
  std::uint32_t allocs = 0;
  std::uint64_t payload_checksum = 0;
};

// Compresses `raw`, completes `head` and appends the whole block.
void put_block(support::Buffer& out, BlockHead head, support::ByteSpan raw, int zstd_level);
// Nothing if the bytes are not a block head or its checksum does not match.
std::optional<BlockHead> take_block_head(support::ByteSpan bytes);
// The payload, decompressed; nothing if it does not match the head.
std::optional<support::Buffer> open_payload(const BlockHead& head, support::ByteSpan stored);

// The last bytes of a complete file: where its footer block is.
void put_trailer(support::Buffer& out, std::uint64_t footer_offset);
std::optional<std::uint64_t> take_trailer(support::ByteSpan bytes);

}  // namespace vramscope::trace
