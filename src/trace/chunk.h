// A chunk of events as the payload of a block, and back. Each chunk can be decoded without any other.
#pragma once

#include "support/bytes.h"
#include "support/result.h"
#include "trace/gen/schema.h"
#include "trace/reader.h"

namespace vramscope::trace {

// `ordinals`: for a thinned chunk, the ordinals its alloc events had in the recording; empty otherwise.
void encode_chunk(const Chunk& chunk, std::span<const std::uint64_t> ordinals, std::span<const Site> sites,
                  support::Buffer& payload);

// Fills `chunk`, whose first_event and first_alloc the caller knows from the block head, and `ordinals` if the chunk is
// thinned. All references to dictionaries are checked; frees refer to ordinals of the recording.
Status decode_chunk(support::ByteSpan payload, const Dictionaries& all, Chunk& chunk, std::vector<std::uint64_t>& ordinals);

}  // namespace vramscope::trace
