#include "analyze/attribute/tags.h"

#include <tsl/robin_set.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/framework.h"
#include "analyze/index/lifetime.h"
#include "trace/gen/site_flags.h"

namespace vramscope::analyze {
namespace {

struct TagMatch {
  const Stamped<trace::Tag>* tag;
  std::uint32_t block;
};

// The live blocks of tensors by address, while the events are followed.
class LiveTensors {
 public:
  LiveTensors(const Store& draft, Moment at) : draft_(draft), at_(at) {
    for_each_live(draft, at, [&](std::uint32_t alloc) {
      if (is_tensor(alloc)) blocks_like(alloc)[draft.address[alloc]] = alloc;
    });
  }

  void move_to(Moment at) {
    for (; at_ < at; ++at_) {
      const std::uint32_t ref = draft_.ref[at_], alloc = ref >> 1;
      if (ref == kNone32 || !is_tensor(alloc)) continue;
      if ((ref & 1) != 0)
        blocks_like(alloc).erase(draft_.address[alloc]);
      else
        blocks_like(alloc)[draft_.address[alloc]] = alloc;
    }
  }

  // The block that contains the address, or whose object is there.
  std::optional<std::uint32_t> find(std::uint64_t address) const {
    if (const auto object = objects_.find(address); object != objects_.end()) return object->second;
    auto it = blocks_.upper_bound(address);
    if (it == blocks_.begin()) return std::nullopt;
    --it;
    const Bytes bytes = std::max<Bytes>(1, draft_.kind_of(it->second).granted);
    return address - it->first < bytes ? std::optional(it->second) : std::nullopt;
  }

 private:
  bool is_tensor(std::uint32_t alloc) const {
    const auto& pools = draft_.dictionaries().pools;
    const std::uint32_t pool = draft_.kind_of(alloc).pool;
    return pool < pools.size() && pools[pool].level == trace::Level::tensor;
  }

  // An object is smaller than the memory that it has: what follows its address belongs to others.
  std::map<std::uint64_t, std::uint32_t>& blocks_like(std::uint32_t alloc) {
    return (draft_.site_of(draft_.kind_of(alloc)).flags & trace::kSiteObject) != 0 ? objects_ : blocks_;
  }

  const Store& draft_;
  Moment at_;
  std::map<std::uint64_t, std::uint32_t> blocks_, objects_;
};

// Blocks that were reported as a variable's, but existed while that variable had another one, before or after. They belong to
// something else and the variable only shares them: a constant that it is reset to, for example. All variables are reported
// together, between two marks. The tensors of a batch or of a dataset have no names of their own to be compared by, and neither
// have variables that the program did not name: each is "Variable".
std::vector<std::uint32_t> only_shared(const Store& draft, std::span<const TagMatch> matches) {
  std::vector<std::uint32_t> out;
  std::map<std::string_view, TagMatch> last;  // the previous report of each variable
  tsl::robin_set<std::uint32_t> reported_before;
  std::size_t mark = 0;
  for (std::size_t from = 0, to = 0; from < matches.size(); from = to) {
    // In a forged trace, a mark and a tag can have one position.
    while (mark < draft.marks.size() && draft.marks[mark].pos <= matches[from].tag->pos) ++mark;
    const std::uint64_t end = mark < draft.marks.size() ? draft.marks[mark].pos : kNever;
    tsl::robin_set<std::uint32_t> reported;
    std::map<std::string_view, std::uint32_t> block_of_name;
    std::set<std::string_view> names_of_several;
    for (to = from; to < matches.size() && matches[to].tag->pos < end; ++to) {
      reported.insert(matches[to].block);
      const std::string_view name = draft.text(matches[to].tag->row.name);
      if (block_of_name.try_emplace(name, matches[to].block).first->second != matches[to].block) names_of_several.insert(name);
    }
    for (const TagMatch& match : matches.subspan(from, to - from)) {
      const std::string_view name = draft.text(match.tag->row.name);
      if (match.tag->row.category == trace::Category::input || names_of_several.contains(name)) continue;
      auto [it, first] = last.try_emplace(name, match);
      const TagMatch before = std::exchange(it->second, match);
      if (first || before.block == match.block) continue;
      if (!framework_of(draft, draft.kind_of(match.block)).variables_share_blocks) continue;
      if (!reported.contains(before.block) && draft.death[before.block] > match.tag->pos) out.push_back(before.block);
      if (!reported_before.contains(match.block) && draft.birth[match.block] < before.tag->pos) out.push_back(match.block);
    }
    reported_before = std::move(reported);
  }
  return out;
}

// fn(tag, its block) for each tag; their positions rise.
template <typename Fn>
void for_each_match(const Store& draft, std::span<const Stamped<trace::Tag>* const> tags, const Fn& fn) {
  for (std::size_t i = 0; i < tags.size();) {
    const std::uint64_t from = tags[i]->pos;
    LiveTensors live(draft, from);
    for (; i < tags.size() && tags[i]->pos - from < kEventsOfBurst; ++i) {
      live.move_to(tags[i]->pos);
      fn(*tags[i], live.find(tags[i]->row.address));
    }
  }
}

}  // namespace

ResolvedTags resolve_tags(const Store& draft) {
  ResolvedTags out;
  std::vector<TagMatch> matches;
  std::vector<const Stamped<trace::Tag>*> tags;
  for (const Stamped<trace::Tag>& tag : draft.tags) tags.push_back(&tag);
  for_each_match(draft, tags, [&](const Stamped<trace::Tag>& tag, std::optional<std::uint32_t> block) {
    if (!block) {
      ++out.unmatched;
      return;
    }
    out.blocks[*block] = &tag;  // the newest tag wins
    matches.push_back({&tag, *block});
  });
  for (std::uint32_t block : only_shared(draft, matches)) out.blocks.erase(block);
  return out;
}

std::vector<std::uint32_t> tagged_as(const Store& draft, trace::Category category) {
  std::vector<const Stamped<trace::Tag>*> tags;
  for (const Stamped<trace::Tag>& tag : draft.tags)
    if (tag.row.category == category) tags.push_back(&tag);
  std::vector<std::uint32_t> out;
  for_each_match(draft, tags, [&](const Stamped<trace::Tag>&, std::optional<std::uint32_t> block) {
    if (block) out.push_back(*block);
  });
  return out;
}

}  // namespace vramscope::analyze
