// The pickle that torch.cuda.memory._dump_snapshot() and PyTorch's own out-of-memory handler write, of all versions.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "importers/importer.h"
#include "importers/pickle.h"
#include "importers/torch_layout.h"
#include "support/secret_hash.h"

namespace vramscope::importers::torch_snapshot {

extern const Importer kImporter;

namespace {

enum class Action : std::uint8_t { alloc, free_requested, free_completed, take, give_back, oom, other };

struct Entry {
  std::uint64_t address, bytes, time_us;
  std::uint64_t stream;
  Stack stack;
  Action action;
};

Action action_of(std::string_view word) {
  constexpr std::size_t kLongestWord = 32;
  static const std::unordered_map<std::string_view, Action> kWords = {{"alloc", Action::alloc},
                                                                      {"free_requested", Action::free_requested},
                                                                      {"free_completed", Action::free_completed},
                                                                      {"segment_alloc", Action::take},
                                                                      {"segment_map", Action::take},
                                                                      {"segment_free", Action::give_back},
                                                                      {"segment_unmap", Action::give_back},
                                                                      {"oom", Action::oom}};
  const auto found = kWords.find(word.substr(0, kLongestWord));
  return found == kWords.end() ? Action::other : found->second;
}

// Entries of the traces and frames become rows as soon as their dictionaries are complete: a snapshot has millions.
class Rows final : public Pickle::Shapes {
 public:
  explicit Rows(Profile& profile) : profile_(profile) {}

  std::optional<std::uint64_t> replace(const Pickle& pickle, std::span<const PickleValue> members) override {
    if (members.size() > kMostMembers) return {};
    if (const auto action = pickle.text(pickle.member(members, "action"))) return entry(pickle, members, *action);
    const auto file = pickle.text(pickle.member(members, "filename"));
    if (!file) return {};
    const std::string_view name = pickle.text(pickle.member(members, "name")).value_or("");
    return kFrame | profile_.frame({profile_.text_in_file(name), profile_.text_in_file(*file),
                                    pickle.number(pickle.member(members, "line")).value_or(0)});
  }

  // Of a list of frames, innermost first, as PyTorch has them.
  Stack stack(const Pickle& pickle, PickleValue list) {
    auto items = pickle.items(list);
    if (items.empty()) return 0;
    items = items.first(std::min(items.size(), kDeepest));
    const auto [known, fresh] = stacks_.try_emplace(pickle.id(list), Known{0, 0});
    if (!fresh && known->second.length == items.size()) return known->second.stack;
    std::vector<std::uint32_t> frames;
    for (const PickleValue item : items)
      if (const auto number = pickle.replaced(item); number && (*number & kFrame) != 0)
        frames.push_back(static_cast<std::uint32_t>(*number));
    known->second = {profile_.stack(frames), items.size()};
    return known->second.stack;
  }

  const Entry* entry(const Pickle& pickle, PickleValue value) const {
    const auto number = pickle.replaced(value);
    return number && (*number & kFrame) == 0 && *number < entries_.size() ? &entries_[*number] : nullptr;
  }

 private:
  static constexpr std::size_t kMostMembers = 64;
  static constexpr std::size_t kDeepest = 1024;
  static constexpr std::uint64_t kFrame = std::uint64_t{1} << 40;
  struct Known {
    Stack stack;
    std::size_t length;  // a list may grow after it was read
  };

  std::uint64_t entry(const Pickle& pickle, std::span<const PickleValue> members, std::string_view action) {
    const auto number = [&](std::string_view name) { return pickle.number(pickle.member(members, name)).value_or(0); };
    entries_.push_back({number("addr"), number("size"), number("time_us"), number("stream"),
                        stack(pickle, pickle.member(members, "frames")), action_of(action)});
    return entries_.size() - 1;
  }

  Profile& profile_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, Known, support::SecretHash> stacks_;
};

// Blocks of one device at the time of the snapshot.
struct Block {
  std::uint64_t address, bytes, requested;
  Stack stack;
};

class Device {
 public:
  Device(std::int64_t number, Profile& profile, std::uint64_t max_split, bool expandable, bool granted)
      : profile_(profile),
        layout_(max_split, expandable),
        granted_(granted),
        pool_(profile.pool({fmt::format("PyTorch GPU {}", number), number, trace::Memory::device, trace::Framework::pytorch})) {}

  void segment(std::uint64_t address, std::uint64_t bytes) { segments_.push_back({address, bytes, 0, 0}); }
  void live(const Block& block) { live_.push_back(block); }

  void read(const Pickle& pickle, const Rows& rows, std::span<const PickleValue> trace) {
    std::vector<const Entry*> entries;
    for (const PickleValue item : trace)
      if (const Entry* entry = rows.entry(pickle, item)) entries.push_back(entry);
    earlier(entries);
    std::uint64_t order = 0;
    for (const Entry* entry : entries) add(*entry, entry->time_us != 0 ? entry->time_us : ++order);
    has_trace_ |= !entries.empty();
  }
  // For a snapshot without a trace: what it says of its own instant.
  void state_alone() {
    if (has_trace_) return;
    earlier({});
  }
  bool anything_earlier() const { return earlier_; }

 private:
  // What was there before the first entry: blocks that are live at the end or freed, but never allocated in the trace.
  void earlier(const std::vector<const Entry*>& entries) {
    struct Seen {
      bool allocated_first;
      std::uint64_t last_alloc;
    };
    std::unordered_map<std::uint64_t, Seen, support::SecretHash> seen;
    std::unordered_map<std::uint64_t, bool, support::SecretHash> segment_taken;
    std::vector<Block> before;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = *entries[i];
      if (entry.action == Action::take || entry.action == Action::give_back)
        segment_taken.try_emplace(entry.address, entry.action == Action::take);
      const bool alloc = entry.action == Action::alloc;
      if (!alloc && entry.action != Action::free_requested) continue;
      const auto [found, fresh] = seen.try_emplace(entry.address, Seen{alloc, 0});
      if (alloc) found->second.last_alloc = i + 1;
      if (fresh && !alloc) before.push_back({entry.address, granted(entry.bytes), entry.bytes, entry.stack});
    }
    for (const Block& segment : segments_)
      if (const auto found = segment_taken.find(segment.address); found == segment_taken.end()) {
        profile_.had_region(pool_, segment.address, segment.bytes);
        layout_.take_segment(segment.address, segment.bytes);
      }
    for (const Block& block : live_) {
      const auto found = seen.find(block.address);
      if (found == seen.end())
        before.push_back(block);
      else if (found->second.last_alloc != 0)
        known_size_[entries[found->second.last_alloc - 1]] = block.bytes;
    }
    for (const Block& block : before) {
      profile_.was_live(pool_, block.address, block.requested, block.bytes, {.stack = block.stack});
      layout_.allocate(block.address, block.bytes);
      size_[block.address] = block.bytes;
    }
    earlier_ = !before.empty();
  }

  std::uint64_t granted(std::uint64_t size) const { return granted_ ? size : TorchLayout::rounded(size); }

  void add(const Entry& entry, std::uint64_t time_us) {
    switch (entry.action) {
      case Action::alloc: {
        const auto known = known_size_.find(&entry);
        const std::uint64_t simulated = layout_.allocate(entry.address, entry.bytes);
        const std::uint64_t size = known != known_size_.end() ? known->second : granted_ ? entry.bytes : simulated;
        size_[entry.address] = size;
        profile_.alloc(time_us, pool_, entry.address, entry.bytes, size, {.stack = entry.stack, .stream = entry.stream});
        break;
      }
      case Action::free_requested:  // from here on PyTorch does not count it as allocated
        profile_.free(time_us, pool_, entry.address);
        break;
      case Action::free_completed: {
        const auto size = size_.find(entry.address);
        layout_.release(entry.address, size != size_.end() ? size->second : granted(entry.bytes));
        break;
      }
      case Action::take:
        layout_.take_segment(entry.address, entry.bytes);
        profile_.region(time_us, pool_, entry.address, entry.bytes, false);
        break;
      case Action::give_back:
        layout_.return_segment(entry.address, entry.bytes);
        profile_.region(time_us, pool_, entry.address, entry.bytes, true);
        break;
      case Action::oom:
        profile_.oom(time_us, pool_, entry.bytes, 0, 0, {.stack = entry.stack, .stream = entry.stream});
        break;
      case Action::other:
        break;
    }
  }

  Profile& profile_;
  TorchLayout layout_;
  bool granted_;  // sizes of the trace are granted bytes already
  std::uint32_t pool_;
  std::vector<Block> segments_, live_;
  std::unordered_map<const Entry*, std::uint64_t> known_size_;  // the snapshot has the blocks that are live at its instant
  std::unordered_map<std::uint64_t, std::uint64_t, support::SecretHash> size_;
  bool has_trace_ = false, earlier_ = false;
};

class Snapshot {
 public:
  Snapshot(const Pickle& pickle, Rows& rows, Profile& profile) : pickle_(pickle), rows_(rows), profile_(profile) {}

  Status read(PickleValue top) {
    const bool bare = !pickle_.is_dictionary(top);  // up to 1.13: the segments alone
    const PickleValue settings = pickle_.member(top, "allocator_settings");
    ours_ = pickle_.text(pickle_.member(settings, "vramscope")).has_value();
    expandable_ = pickle_.truth(pickle_.member(settings, "expandable_segments"));
    const std::uint64_t split = pickle_.number(pickle_.member(settings, "max_split_size")).value_or(0);
    if (split != 0) max_split_ = split;
    if (const auto text = pickle_.text(pickle_.member(settings, "PYTORCH_CUDA_ALLOC_CONF")); text && !text->empty())
      profile_.setting("env.PYTORCH_CUDA_ALLOC_CONF", *text);
    for (const PickleValue segment : pickle_.items(bare ? top : pickle_.member(top, "segments"))) read_segment(segment);
    const auto traces = pickle_.items(pickle_.member(top, "device_traces"));
    if (traces.size() > kMostDevices) return fail("damaged snapshot: traces of more devices than any machine has");
    std::vector<std::uint64_t> seen;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      const auto entries = pickle_.items(traces[i]);
      if (entries.empty()) continue;
      // One list may stand for the traces of many devices in a hostile file.
      if (std::ranges::find(seen, pickle_.id(traces[i])) != seen.end())
        return fail("damaged snapshot: two devices share a trace");
      seen.push_back(pickle_.id(traces[i]));
      device(static_cast<std::int64_t>(i)).read(pickle_, rows_, entries);
    }
    bool earlier = false;
    for (auto& [number, each] : devices_) {
      each.state_alone();
      earlier |= each.anything_earlier();
    }
    profile_.lacks("steps, layers, ops, dtypes and shapes");
    profile_.lacks("memory outside PyTorch's allocator");
    if (earlier) profile_.lacks("when blocks were allocated that were live before its history began");
    return {};
  }

 private:
  static constexpr std::size_t kMostDevices = 1024;

  Device& device(std::int64_t number) {
    return devices_.try_emplace(number, number, profile_, max_split_, expandable_, ours_).first->second;
  }

  void read_segment(PickleValue segment) {
    const auto number = [&](PickleValue of, std::string_view name) { return pickle_.number(pickle_.member(of, name)); };
    const auto on = number(segment, "device").value_or(0);
    if (!pickle_.is_dictionary(segment) || on >= kMostDevices) return;
    Device& device = this->device(static_cast<std::int64_t>(on));
    const std::uint64_t address = number(segment, "address").value_or(0);
    device.segment(address, number(segment, "total_size").value_or(0));
    std::uint64_t at = address;  // blocks had no address before 2.1
    for (const PickleValue block : pickle_.items(pickle_.member(segment, "blocks"))) {
      const std::uint64_t bytes = number(block, "size").value_or(0);
      const std::uint64_t place = number(block, "address").value_or(at);
      if (pickle_.text(pickle_.member(block, "state")) == "active_allocated")
        device.live({place, bytes, number(block, "requested_size").value_or(bytes),
                     rows_.stack(pickle_, pickle_.member(block, "frames"))});
      at = place + bytes;
    }
  }

  const Pickle& pickle_;
  Rows& rows_;
  Profile& profile_;
  std::uint64_t max_split_ = ~std::uint64_t{0};
  bool expandable_ = false;
  bool ours_ = false;
  std::map<std::int64_t, Device> devices_;
};

bool recognizes(std::string_view bytes) { return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5; }

Status read(std::string_view bytes, Profile& into) {
  Pickle pickle(bytes);
  Rows rows(into);
  const auto top = pickle.read(rows);
  if (!top) return std::unexpected(top.error());
  return Snapshot(pickle, rows, into).read(*top);
}

}  // namespace

const Importer kImporter{.name = "torch-snapshot", .title = "a PyTorch memory snapshot", .recognizes = recognizes, .read = read};

}  // namespace vramscope::importers::torch_snapshot
