// Field numbers that the encoder and decoder of chunks handle explicitly. Those of the events come from schema.json.
#pragma once

#include <cstdint>

namespace vramscope::trace {

// The columns that every event has, one row per event.
inline constexpr std::uint64_t kCommonTable = 0;
inline constexpr std::uint64_t kCommonKind = 1;
inline constexpr std::uint64_t kCommonSeq = 2;
inline constexpr std::uint64_t kCommonTime = 3;
inline constexpr std::uint64_t kCommonThread = 4;
inline constexpr std::uint64_t kCommonOrdinal = 5;  // thinned chunks: one row per alloc event

inline constexpr std::uint64_t kAllocSite = 1;
inline constexpr std::uint64_t kAllocAddress = 2;
inline constexpr std::uint64_t kAllocGranted = 3;
inline constexpr std::uint64_t kAllocStep = 4;

inline constexpr std::uint64_t kFreeAlloc = 1;
inline constexpr std::uint64_t kFreeAddress = 2;
inline constexpr std::uint64_t kFreePool = 3;
inline constexpr std::uint64_t kFreeStream = 4;

}  // namespace vramscope::trace
