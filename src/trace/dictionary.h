// Dictionary blocks: entries are added, never changed; an entry refers only to earlier entries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "support/bytes.h"
#include "support/memory_budget.h"
#include "support/result.h"
#include "trace/gen/schema.h"

namespace vramscope::trace {

// How many entries of each dictionary are in the file, by dictionary id.
using DictionarySizes = std::array<std::size_t, 10>;

// Sites, and what only they name, can wait for the first chunk with an allocation.
enum class Additions : std::uint8_t { all, without_sites };

// Encodes entries after `written` into `payload` and advances `written`, by at most about 1 MiB. False if there were none.
bool encode_additions(const Dictionaries& all, DictionarySizes& written, support::Buffer& payload,
                      Additions which = Additions::all);

// Adds the entries of one block. On an error, whose text says what is wrong, `all` is unchanged. If an earlier block was
// damaged, up to `may_miss` entries are replaced by placeholders and subtracted from it. The memory for entries is charged to
// `memory` before it is allocated.
Status decode_additions(support::ByteSpan payload, Dictionaries& all, std::uint64_t& may_miss, support::MemoryBudget& memory);

// Site::flags of a placeholder: its pool and size are unknown, so no event may rely on it.
inline constexpr std::uint64_t kLostSite = std::uint64_t{1} << 63;

// The entries with id 0 that every trace has without writing them: the empty string, the empty stack.
Dictionaries initial_dictionaries();

}  // namespace vramscope::trace
