// Dictionary blocks: entries are added, never changed; an entry refers only to entries before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "support/bytes.h"
#include "support/result.h"
#include "trace/gen/schema.h"

namespace vramscope::trace {

// How many entries of each dictionary are in the file, by dictionary id.
using DictionarySizes = std::array<std::size_t, 8>;

// Sites, and what only they name, can wait for the first chunk with an allocation.
enum class Additions : std::uint8_t { all, without_sites };

// Encodes entries after `written` into `payload` and advances `written`, about 1 MiB at most. False if there were none.
bool encode_additions(const Dictionaries& all, DictionarySizes& written, support::Buffer& payload,
                      Additions which = Additions::all);

// Adds the entries of one block. On an error, whose text says what is wrong, `all` is unchanged. Where a block before was
// damaged, up to `may_miss` entries are replaced by placeholders, and counted off.
Status decode_additions(support::ByteSpan payload, Dictionaries& all, std::uint64_t& may_miss);

// Site::flags of a placeholder: its pool and size are not known, so that no event may build on it.
inline constexpr std::uint64_t kLostSite = std::uint64_t{1} << 63;

// The entries with id 0 that every trace has without writing them: the empty string, the empty stack.
Dictionaries initial_dictionaries();

}  // namespace vramscope::trace
