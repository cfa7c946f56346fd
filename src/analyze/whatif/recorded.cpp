#include "analyze/whatif/recorded.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "analyze/framework.h"
#include "analyze/index/lifetime.h"
#include "support/python_paths.h"
#include "support/units.h"
#include "trace/gen/site_flags.h"
#include "whatif/replay/bfc.h"

namespace vramscope::analyze {
namespace {

using whatif::What;

std::optional<std::uint32_t> largest_pool(const Store& store, const Place& place) {
  std::optional<std::uint32_t> out;
  for (const std::uint32_t pool : place.pools) {
    if (pool >= store.pool_tallies.size() || store.pool_tallies[pool].allocs == 0) continue;
    if (!out || store.pool_tallies[pool].peak > store.pool_tallies[*out].peak) out = pool;
  }
  return out;
}

// Streams get numbers in the order of their handles, as the allocators sort them.
std::map<std::uint64_t, std::uint16_t> stream_numbers(const Store& store, std::uint32_t pool) {
  std::map<std::uint64_t, std::uint16_t> out;
  for (const Kind& kind : store.kinds)
    if (kind.pool == pool) out.emplace(store.site_of(kind).stream, std::uint16_t{0});
  std::uint16_t next = 0;
  for (auto& [stream, number] : out) number = next++;
  return out;
}

std::uint32_t section_at(const Store& store, std::uint64_t pos) {
  const auto after = std::ranges::upper_bound(store.steps, pos, {}, &StepRow::begin);
  return static_cast<std::uint32_t>(after - store.steps.begin());
}

// Where in the trace events and calls are.
struct Positions {
  std::vector<std::uint64_t> events, calls;
};

void add_events(const Store& store, const Filter& filter, Moment until, RecordedPool& out, Positions& at) {
  const auto streams = stream_numbers(store, out.pool);
  std::vector<std::uint32_t> block_of(store.allocs(), kNone32);
  for (std::uint64_t pos = 0; pos < std::min<std::uint64_t>(store.events(), until); ++pos) {
    const std::uint32_t ref = store.ref[pos];
    if (ref == kNone32) continue;
    const std::uint32_t alloc = ref >> 1;
    const Kind& kind = store.kind_of(alloc);
    if (kind.pool != out.pool) continue;
    if ((ref & 1) != 0) {
      if (block_of[alloc] == kNone32) continue;
      out.events.push_back({0, block_of[alloc], 0, What::free, 0});
      at.events.push_back(pos);
      continue;
    }
    if (!filter.matches(alloc)) continue;
    const Bytes bytes = kind.requested != 0 ? kind.requested : kind.granted;
    const auto stream = streams.find(store.site_of(kind).stream);
    block_of[alloc] = static_cast<std::uint32_t>(out.allocs.size());
    out.allocs.push_back(alloc);
    out.sections.push_back(section_at(store, pos));
    out.events.push_back({bytes, block_of[alloc], stream != streams.end() ? stream->second : std::uint16_t{0}, What::alloc, 0});
    at.events.push_back(pos);
  }
}

// What the pool took from the level below: its regions, or the blocks that the framework itself allocated from the driver.
void add_calls(const Engine::State& state, std::int64_t device, RecordedPool& out, Positions& at) {
  const Store& store = state.store;
  const auto add = [&](const whatif::DeviceCall& call, std::uint64_t pos) {
    out.calls.push_back(call);
    at.calls.push_back(pos);
  };
  for (const auto& region : store.regions)
    if (static_cast<std::uint32_t>(region.row.pool) == out.pool)
      add({region.row.returned, region.row.address, region.row.bytes}, region.pos);
  Bytes now = 0, peak = 0;
  const std::string_view owner = framework(out.framework).pool_owner;
  if (out.calls.empty() && !out.on_host && !owner.empty()) {
    std::set<std::uint32_t> linear;
    for (const Place& place : state.places)
      if (place.driver && place.device == device) linear.insert(place.pools.begin(), place.pools.end());
    for (std::uint64_t pos = 0; pos < store.events(); ++pos) {
      const std::uint32_t ref = store.ref[pos];
      if (ref == kNone32) continue;
      const Kind& kind = store.kind_of(ref >> 1);
      if (!linear.contains(kind.pool) || store.text(store.site_of(kind).owner) != owner) continue;
      if (store.dictionaries().pools[kind.pool].memory != trace::Memory::device) continue;
      add({(ref & 1) != 0, store.address[ref >> 1], kind.granted}, pos);
    }
  }
  for (const whatif::DeviceCall& call : out.calls) {
    now = call.returned ? now - std::min(now, call.bytes) : now + call.bytes;
    peak = std::max(peak, now);
  }
  if (!out.calls.empty()) out.reserved_peak = peak;
}

// Whether PyTorch itself may have returned memory to serve the request, as it does again in a replay.
bool may_flush(const RecordedPool& recorded, const whatif::Event& event, Bytes reserved) {
  constexpr double kFullCard = 0.9;  // others use it too
  if (event.what != What::alloc) return false;
  const whatif::TorchSettings& settings = recorded.scenario.torch;
  if (settings.collection_threshold > 0 || settings.max_split != whatif::kUnlimited) return true;
  const Bytes room = settings.limit != 0 ? settings.limit : static_cast<Bytes>(kFullCard * static_cast<double>(recorded.card));
  return room != 0 && reserved + settings.segment_for(settings.rounded(event.bytes)) > room;
}

// Calls of torch.cuda.empty_cache() are not reported. Between two requests, nothing else returns memory.
void add_emptied_caches(const Positions& at, RecordedPool& out) {
  if (out.scenario.kind != whatif::Scenario::Kind::torch) return;
  whatif::Events events;
  events.reserve(out.events.size());
  Bytes reserved = 0;
  std::size_t call = 0, times = 0;
  for (std::size_t i = 0; i < out.events.size(); ++i) {
    const Bytes before = reserved;
    bool returned = false;
    for (; call < out.calls.size() && at.calls[call] <= at.events[i]; ++call) {
      const auto& [is_return, address, bytes] = out.calls[call];
      reserved = is_return ? reserved - std::min(reserved, bytes) : reserved + bytes;
      returned = returned || is_return;
    }
    if (returned && !may_flush(out, out.events[i], before)) {
      events.push_back({.what = What::empty_cache});
      ++times;
    }
    events.push_back(out.events[i]);
  }
  if (times == 0) return;
  out.events = std::move(events);
  out.assumptions.push_back(fmt::format("The program emptied the cache {}; it does so at the same points of a replay.",
                                        support::format_plural(times, "time", "times")));
}

Bytes limit_of(const Store& store, std::uint32_t pool) {
  Bytes limit = 0;
  for (const auto& stats : store.stats)
    if (static_cast<std::uint32_t>(stats.row.pool) == pool && stats.row.limit != 0) limit = stats.row.limit;
  return limit;
}

bool holds_objects(const Store& store, std::uint32_t pool) {
  return std::ranges::any_of(
      store.kinds, [&](const Kind& kind) { return kind.pool == pool && (store.site_of(kind).flags & trace::kSiteObject) != 0; });
}

Bytes card_of(const Store& store, std::int64_t device) {
  for (const auto& context : store.contexts)
    if (context.row.device == device && context.row.total != 0) return context.row.total;
  for (const auto& sample : store.device_samples)
    if (sample.row.device == device && sample.row.total != 0) return sample.row.total;
  return 0;
}

}  // namespace

void set_bfc(const Store& store, RecordedPool& pool, bool collection) {
  whatif::BfcSettings& bfc = pool.scenario.bfc;
  pool.scenario.kind = whatif::Scenario::Kind::bfc;
  pool.quantum = whatif::kBfcQuantum;
  const Bytes limit = limit_of(store, pool.pool);
  if (limit != 0) bfc.limit = limit;
  // A pool without growth takes its limit with the first request.
  bfc.growth = limit == 0 || pool.calls.empty() || pool.calls.front().bytes + whatif::kBfcQuantum <= limit;
  bfc.collection = collection && !pool.on_host;
  pool.settings = bfc.growth ? "BFC, grows" : "BFC, one region";
}

bool has_traced_graph(const Store& store) {
  return std::ranges::any_of(store.reports,
                             [](const trace::Report& report) { return std::holds_alternative<trace::TracedGraph>(report); });
}

std::unexpected<Error> too_much_work(std::string_view advice) {
  return fail(fmt::format(
      "the replay takes too much work: very many events, or requests that walk over very many free blocks; {}", advice));
}

Result<RecordedPool> recorded_pool(const Engine::State& state, const RecordedPart& part) {
  const Store& store = state.store;
  const auto place = state.place(part.place);
  if (!place) return std::unexpected(place.error());
  const auto filter = state.filter(part.where, kNever, part.place);
  if (!filter) return std::unexpected(filter.error());
  RecordedPool out;
  const auto pool = part.pool ? part.pool : largest_pool(store, **place);
  if (!pool) return fail((*place)->name + " has no allocation to replay");
  out.pool = *pool;
  out.framework = store.dictionaries().pools[*pool].framework;
  out.on_host = (*place)->device < 0;
  Positions at;
  add_events(store, *filter, part.until, out, at);
  add_calls(state, (*place)->device, out, at);
  if (const Bytes card = card_of(store, (*place)->device); card != 0) out.scenario.device.total = out.card = card;
  out.of_objects = holds_objects(store, *pool);
  if (const auto set_replay = framework(out.framework).set_replay; set_replay != nullptr && !out.of_objects) {
    if (const Status done = set_replay(store, (*place)->limit, out); !done) return std::unexpected(done.error());
  } else {
    out.scenario.kind = whatif::Scenario::Kind::uncached;
    out.settings = out.of_objects ? "arrays alone" : "no cache";
  }
  if (out.of_objects)
    out.assumptions.emplace_back(
        "The allocator was not recorded: only arrays count, without temporaries of programs and what the allocator keeps.");
  add_emptied_caches(at, out);
  if (*pool < state.figures.pools.size()) out.before = state.figures.pools[*pool].before_bytes;
  if (store.lost_events() > 0 || !store.omitted.empty())
    out.assumptions.emplace_back("Events are missing in the recording; what they needed is not counted.");
  return out;
}

Shown category_of(const Store& store, const RecordedPool& recorded, std::uint32_t block) {
  const std::uint32_t alloc = recorded.allocs[block];
  if (alloc != kNone32) return shown(store.attributes_of(alloc).category());
  return block < recorded.added.size() ? recorded.added[block] : Shown::unknown;
}

EventRange events_of_section(const RecordedPool& recorded, std::uint32_t section) {
  std::size_t first = recorded.events.size();
  for (std::size_t i = 0; i < recorded.events.size(); ++i) {
    if (recorded.events[i].what != What::alloc) continue;
    const std::uint32_t at = recorded.sections[recorded.events[i].block];
    if (at == section) first = std::min(first, i);
    if (at > section) return {std::min(first, i), i};
  }
  return {first, recorded.events.size()};
}

RecordedPool from_event(const RecordedPool& recorded, std::size_t position) {
  RecordedPool out = recorded;
  std::vector<whatif::Event> live(recorded.allocs.size());
  std::vector<char> lives(recorded.allocs.size(), 0);
  for (std::size_t i = 0; i < std::min(position, recorded.events.size()); ++i) {
    const whatif::Event& event = recorded.events[i];
    if (event.what == What::alloc) live[event.block] = event;
    if (whatif::is_of_block(event)) lives[event.block] = event.what == What::alloc ? 1 : 0;
  }
  out.events.clear();
  out.allocs.clear();
  out.sections.clear();
  std::vector<std::uint32_t> number(recorded.allocs.size(), kNone32);
  const auto add = [&](whatif::Event event) {
    const std::uint32_t before = event.block;
    if (!whatif::is_of_block(event)) return out.events.push_back(event);
    if (event.what == What::alloc) {
      number[before] = static_cast<std::uint32_t>(out.allocs.size());
      out.allocs.push_back(recorded.allocs[before]);
      out.sections.push_back(recorded.sections[before]);
    }
    event.block = number[before];
    out.events.push_back(event);
  };
  for (std::size_t block = 0; block < live.size(); ++block)
    if (lives[block] != 0) add(live[block]);
  for (std::size_t i = position; i < recorded.events.size(); ++i) add(recorded.events[i]);
  return out;
}

namespace {

std::vector<bool> generated_frames(const trace::Dictionaries& dictionaries) {
  std::vector<bool> out;
  for (const trace::Frame& frame : dictionaries.frames)
    out.push_back(support::is_generated_python(text_of(dictionaries, frame.file)));
  return out;
}

// Equal in recordings of the same program at other batch sizes, for which TorchInductor writes other files.
std::string place_of(const trace::Dictionaries& dictionaries, const std::vector<bool>& generated, std::size_t stack) {
  if (stack >= dictionaries.stacks.size()) return "0";
  const auto& frames = dictionaries.stacks[stack].frames;
  const auto is_generated = [&](trace::FrameId id) {
    return static_cast<std::size_t>(id) < generated.size() && generated[static_cast<std::size_t>(id)];
  };
  if (std::ranges::none_of(frames, is_generated)) return std::to_string(dictionaries.stacks[stack].hash);
  std::string out;
  for (const trace::FrameId id : frames) {
    if (static_cast<std::size_t>(id) >= dictionaries.frames.size()) continue;
    const trace::Frame& frame = dictionaries.frames[static_cast<std::size_t>(id)];
    out += text_of(dictionaries, frame.function);
    if (!is_generated(id)) out += fmt::format(" {}:{}", text_of(dictionaries, frame.file), frame.line);
    out += '\n';
  }
  return out;
}

}  // namespace

std::vector<whatif::Request> requests_of(const Store& store, const RecordedPool& recorded) {
  const trace::Dictionaries& dictionaries = store.dictionaries();
  const std::vector<bool> generated = generated_frames(dictionaries);
  std::vector<std::uint64_t> key_of(dictionaries.sites.size(), 0);
  for (std::size_t i = 0; i < key_of.size(); ++i) {
    const trace::Site& site = dictionaries.sites[i];
    std::string key(store.text(site.op));
    key += '\n';
    key += store.text(site.region);
    key += '\n' + place_of(dictionaries, generated, static_cast<std::size_t>(site.stack)) + '\n' + std::to_string(site.dtype);
    key_of[i] = std::hash<std::string>{}(key);
  }
  std::vector<whatif::Request> out;
  out.reserve(recorded.allocs.size());
  for (const whatif::Event& event : recorded.events) {
    if (event.what != What::alloc) continue;
    const std::uint32_t site = store.kind_of(recorded.allocs[event.block]).site;
    out.push_back({site < key_of.size() ? key_of[site] : 0, recorded.sections[event.block], event.block, event.bytes});
  }
  return out;
}

}  // namespace vramscope::analyze
