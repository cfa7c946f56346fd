// The pickle that torch.cuda.memory._dump_snapshot() and PyTorch's own out-of-memory handler write, of all versions.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
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

// What a hostile file may claim: no sum of sizes wraps around below it, and no program allocates that much in its life.
class Claims {
 public:
  // A block or segment of the file; false from the first impossible one on.
  bool add(std::uint64_t address, std::uint64_t bytes) {
    possible_ &= bytes <= kMost - total_ && address <= ~std::uint64_t{0} - bytes;
    if (possible_) total_ += bytes;
    return possible_;
  }
  Status status() const { return possible_ ? Status{} : fail("damaged snapshot: it has sizes or addresses that no memory has"); }

 private:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::uint64_t total_ = 0;
  bool possible_ = true;
};

// 32 bytes: a snapshot has millions.
struct Entry {
  std::uint64_t address, bytes, time_us;
  Stack stack;
  std::uint32_t stream_and_action;

  static constexpr int kActionBits = 3;
  std::uint32_t stream() const { return stream_and_action >> kActionBits; }  // an index: Rows knows the number
  Action action() const { return static_cast<Action>(stream_and_action & ((1u << kActionBits) - 1)); }
};

// Blocks of a segment at the time of the snapshot.
struct Block {
  std::uint64_t address, bytes, requested;
  Stack stack;
  bool has_address, live;
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

// Entries of the traces, blocks, frames and lists of frames become rows as soon as they are complete: a snapshot has millions.
class Rows final : public Pickle::Shapes {
 public:
  explicit Rows(Profile& profile) : profile_(profile) {}

  std::optional<std::uint32_t> replace(Pickle& pickle, std::span<const PickleValue> members) override {
    if (members.size() > kMostMembers) return {};
    if (const auto action = pickle.text(pickle.member(members, "action"))) return entry(pickle, members, *action);
    if (const auto state = pickle.text(pickle.member(members, "state"))) return block(pickle, members, *state);
    const auto file = pickle.text(pickle.member(members, "filename"));
    if (!file) return {};
    const std::string_view name = pickle.text(pickle.member(members, "name")).value_or("");
    return row(kFrame, profile_.frame({profile_.text_in_file(name), profile_.text_in_file(*file),
                                       pickle.number(pickle.member(members, "line")).value_or(0)}));
  }

  // Null: the value is something else.
  const Entry* entry(const Pickle& pickle, PickleValue value) const {
    const auto index = index_of(kEntry, pickle, value);
    return index ? &entries_[*index] : nullptr;
  }
  const Block* block(const Pickle& pickle, PickleValue value) const {
    const auto index = index_of(kBlock, pickle, value);
    return index ? &blocks_[*index] : nullptr;
  }
  std::uint64_t stream(const Entry& entry) const { return streams_[entry.stream()]; }

 private:
  static constexpr std::size_t kMostMembers = 64;
  static constexpr std::size_t kDeepest = 1024;
  // The upper bits of a number say what it is.
  static constexpr std::uint32_t kEntry = 0, kFrame = 1u << 29, kStack = 2u << 29, kBlock = 3u << 29, kIndex = kFrame - 1;

  static std::optional<std::uint32_t> row(std::uint32_t kind, std::uint64_t index) {
    if (index > kIndex) return {};
    return kind | static_cast<std::uint32_t>(index);
  }
  static std::optional<std::uint32_t> index_of(std::uint32_t kind, const Pickle& pickle, PickleValue value) {
    const auto number = pickle.replaced(value);
    if (!number || (*number & ~kIndex) != kind) return {};
    return *number & kIndex;
  }

  std::optional<std::uint32_t> entry(Pickle& pickle, std::span<const PickleValue> members, std::string_view action) {
    const auto number = [&](std::string_view name) { return pickle.number(pickle.member(members, name)).value_or(0); };
    const auto out = row(kEntry, entries_.size());
    if (!out) return {};
    entries_.push_back({number("addr"), number("size"), number("time_us"), stack(pickle, pickle.member(members, "frames")),
                        stream_index(number("stream")) << Entry::kActionBits | static_cast<std::uint32_t>(action_of(action))});
    release(pickle, members);
    return out;
  }

  std::optional<std::uint32_t> block(Pickle& pickle, std::span<const PickleValue> members, std::string_view state) {
    const auto number = [&](std::string_view name) { return pickle.number(pickle.member(members, name)); };
    const auto out = row(kBlock, blocks_.size());
    if (!out) return {};
    const std::uint64_t bytes = number("size").value_or(0);
    const auto address = number("address");
    blocks_.push_back({address.value_or(0), bytes, number("requested_size").value_or(bytes),
                       stack(pickle, pickle.member(members, "frames")), address.has_value(), state == "active_allocated"});
    release(pickle, members);
    return out;
  }

  // Of a list of frames, innermost first, as PyTorch has them. Each entry has a list of its own.
  Stack stack(Pickle& pickle, PickleValue list) {
    if (const auto known = index_of(kStack, pickle, list)) return *known;
    auto items = pickle.items(list);
    items = items.first(std::min(items.size(), kDeepest));
    if (!pickle.afford(items.size())) return 0;
    frames_.clear();
    for (const PickleValue item : items)
      if (const auto frame = index_of(kFrame, pickle, item)) frames_.push_back(*frame);
    const Stack out = profile_.stack(frames_);
    if (const auto number = row(kStack, out); number && !items.empty()) pickle.replace_list(list, *number);
    return out;
  }

  // Lists that nobody will look at: those of newer versions.
  static void release(Pickle& pickle, std::span<const PickleValue> members) {
    for (std::size_t i = 1; i < members.size(); i += 2) pickle.replace_list(members[i], kStack);
  }

  std::uint32_t stream_index(std::uint64_t stream) {
    const auto [known, fresh] = stream_ids_.try_emplace(stream, static_cast<std::uint32_t>(streams_.size()));
    if (fresh) streams_.push_back(stream);
    return known->second;
  }

  Profile& profile_;
  std::deque<Entry> entries_;  // does not move what is in it while it grows
  std::deque<Block> blocks_;
  std::vector<std::uint32_t> frames_;
  std::vector<std::uint64_t> streams_;
  std::unordered_map<std::uint64_t, std::uint32_t, support::SecretHash> stream_ids_;
};

class Device {
 public:
  Device(std::int64_t number, Profile& profile, Claims& claims, std::uint64_t max_split, bool expandable, bool granted)
      : profile_(profile),
        claims_(claims),
        layout_(max_split, expandable),
        granted_(granted),
        pool_(profile.pool({fmt::format("PyTorch GPU {}", number), number, trace::Memory::device, trace::Framework::pytorch})) {}

  void segment(std::uint64_t address, std::uint64_t bytes) {
    if (claims_.add(address, bytes)) segments_.emplace_back(address, bytes);
  }
  void live(const Block& block) {
    if (claims_.add(block.address, block.bytes) && claims_.add(0, block.requested)) live_.push_back(block);
  }

  void read(const Pickle& pickle, const Rows& rows, std::span<const PickleValue> trace) {
    std::vector<const Entry*> entries;
    for (const PickleValue item : trace)
      if (const Entry* entry = rows.entry(pickle, item); entry != nullptr && claims_.add(entry->address, entry->bytes))
        entries.push_back(entry);
    earlier(entries);
    std::uint64_t order = 0;
    for (const Entry* entry : entries) add(*entry, rows.stream(*entry), entry->time_us != 0 ? entry->time_us : ++order);
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
      if (entry.action() == Action::take || entry.action() == Action::give_back)
        segment_taken.try_emplace(entry.address, entry.action() == Action::take);
      const bool alloc = entry.action() == Action::alloc;
      if (!alloc && entry.action() != Action::free_requested) continue;
      const auto [found, fresh] = seen.try_emplace(entry.address, Seen{alloc, 0});
      if (alloc) found->second.last_alloc = i + 1;
      if (fresh && !alloc) before.push_back({entry.address, granted(entry.bytes), entry.bytes, entry.stack, true, true});
    }
    for (const auto& [address, bytes] : segments_)
      if (!segment_taken.contains(address)) {
        profile_.had_region(pool_, address, bytes);
        layout_.take_segment(address, bytes);
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

  void add(const Entry& entry, std::uint64_t stream, std::uint64_t time_us) {
    switch (entry.action()) {
      case Action::alloc: {
        const auto known = known_size_.find(&entry);
        const std::uint64_t simulated = layout_.allocate(entry.address, entry.bytes);
        const std::uint64_t size = known != known_size_.end() ? known->second : granted_ ? entry.bytes : simulated;
        size_[entry.address] = size;
        profile_.alloc(time_us, pool_, entry.address, entry.bytes, size, {.stack = entry.stack, .stream = stream});
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
        profile_.oom(time_us, pool_, entry.bytes, 0, 0, {.stack = entry.stack, .stream = stream});
        break;
      case Action::other:
        break;
    }
  }

  Profile& profile_;
  Claims& claims_;
  TorchLayout layout_;
  bool granted_;  // sizes of the trace are granted bytes already
  std::uint32_t pool_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> segments_;  // address and bytes
  std::vector<Block> live_;
  std::unordered_map<const Entry*, std::uint64_t> known_size_;  // the snapshot has the blocks that are live at its instant
  std::unordered_map<std::uint64_t, std::uint64_t, support::SecretHash> size_;
  bool has_trace_ = false, earlier_ = false;
};

class Snapshot {
 public:
  Snapshot(const Pickle& pickle, const Rows& rows, Profile& profile) : pickle_(pickle), rows_(rows), profile_(profile) {}

  Status read(PickleValue top) {
    const bool bare = !pickle_.is_dictionary(top);  // up to 1.13: the segments alone
    if (!is_snapshot(top, bare)) return fail("a pickle, but not a memory snapshot of PyTorch");
    const PickleValue settings = pickle_.member(top, "allocator_settings");
    ours_ = pickle_.text(pickle_.member(settings, "vramscope")).has_value();
    expandable_ = pickle_.truth(pickle_.member(settings, "expandable_segments"));
    const std::uint64_t split = pickle_.number(pickle_.member(settings, "max_split_size")).value_or(0);
    if (split != 0) max_split_ = split;
    if (const auto text = pickle_.text(pickle_.member(settings, "PYTORCH_CUDA_ALLOC_CONF")); text && !text->empty())
      profile_.setting("env.PYTORCH_CUDA_ALLOC_CONF", *text);
    for (const PickleValue segment : pickle_.items(bare ? top : pickle_.member(top, "segments")))
      if (!pickle_.exhausted()) read_segment(segment);
    if (Status status = claims_.status(); !status) return status;
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
      if (Status status = claims_.status(); !status) return status;
    }
    bool earlier = false;
    for (auto& [number, each] : devices_) {
      each.state_alone();
      earlier |= each.anything_earlier();
    }
    profile_.lacks("steps, layers, ops, dtypes and shapes");
    profile_.lacks("memory outside PyTorch's allocator");
    if (earlier) profile_.lacks("when blocks were allocated that were live before its history began");
    if (pickle_.exhausted()) return fail("damaged snapshot: it refers to the same lists and dictionaries too often");
    return {};
  }

 private:
  static constexpr std::size_t kMostDevices = 1024;

  bool is_snapshot(PickleValue top, bool bare) const {
    const auto has = [&](PickleValue of, std::string_view name) {
      return pickle_.member(of, name).kind() == PickleValue::Kind::object;
    };
    if (!bare) return has(top, "segments") || has(top, "device_traces");
    const auto segments = pickle_.items(top);
    return !segments.empty() && has(segments.front(), "blocks");
  }

  Device& device(std::int64_t number) {
    return devices_.try_emplace(number, number, profile_, claims_, max_split_, expandable_, ours_).first->second;
  }

  void read_segment(PickleValue segment) {
    const auto number = [&](PickleValue of, std::string_view name) { return pickle_.number(pickle_.member(of, name)); };
    const auto on = number(segment, "device").value_or(0);
    if (!pickle_.is_dictionary(segment) || on >= kMostDevices) return;
    Device& device = this->device(static_cast<std::int64_t>(on));
    const std::uint64_t address = number(segment, "address").value_or(0);
    device.segment(address, number(segment, "total_size").value_or(0));
    std::uint64_t at = address;  // blocks had no address before 2.1
    for (const PickleValue value : pickle_.items(pickle_.member(segment, "blocks"))) {
      if (!pickle_.afford(1)) return;
      const Block* row = rows_.block(pickle_, value);
      if (row == nullptr) continue;
      Block block = *row;
      if (!block.has_address) block.address = at;
      if (block.live) device.live(block);
      at = block.address + block.bytes;
    }
  }

  const Pickle& pickle_;
  const Rows& rows_;
  Profile& profile_;
  Claims claims_;
  std::uint64_t max_split_ = ~std::uint64_t{0};
  bool expandable_ = false;
  bool ours_ = false;
  std::map<std::int64_t, Device> devices_;
};

bool recognizes(std::string_view bytes) { return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5; }

Status read(Source& source, Profile& into) {
  Pickle pickle;
  Rows rows(into);
  const auto top = pickle.read(source, rows);
  if (!top) return std::unexpected(top.error());
  return Snapshot(pickle, rows, into).read(*top);
}

}  // namespace

const Importer kImporter{
    .name = "torch-snapshot", .title = "a PyTorch memory snapshot", .recognizes = recognizes, .stream = read};

}  // namespace vramscope::importers::torch_snapshot
