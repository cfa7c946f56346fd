// PyTorch's memory snapshot: the pickle that torch.cuda.memory._dump_snapshot() writes, so that memory_viz shows any recording.
// Sizes are granted bytes, so that sums there equal ours. memory_viz looks up the segment of each block at any instant, and fails
// where there is none: a block outside of known regions is a segment of its own while it lives.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "analyze/absent.h"
#include "analyze/block_rows.h"
#include "exporters/format.h"
#include "exporters/pickle_writer.h"

namespace vramscope::exporters::torch_snapshot {

extern const Format kFormat;

namespace {

using analyze::BlockRow;
using analyze::RegionRow;
using analyze::RowEvent;

// The format has a list for each device up to the highest number, and a trace may claim any.
constexpr std::int64_t kMostDevices = 1024;

struct Segment {
  std::uint64_t bytes = 0;
  std::vector<BlockRow> blocks;  // live at the end, by address
};
using Segments = std::map<std::uint64_t, Segment>;  // by address

struct Failure {
  analyze::OomEvent request;
  std::uint64_t free = 0;  // on the device, as far as it is known
};

// What a trace has of one device. Collected in one sweep: a few bytes can hold many devices and a million events.
struct Device {
  std::vector<RegionRow> regions;
  std::map<std::uint64_t, BlockRow> live;  // at the end, by address
  std::vector<Failure> failures;
  std::vector<std::pair<analyze::Moment, RowEvent>> events;
};

// The device of each pool; -1: none shows its blocks.
std::vector<std::int64_t> devices_of_pools(const analyze::Engine& engine) {
  std::vector<std::int64_t> out(engine.pool_names().size(), -1);
  const auto places = engine.places();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].driver) continue;
    // A recording of the host alone is shown as device 0.
    const std::int64_t device = places[i].device < 0 && static_cast<int>(i) == engine.main_place() ? 0 : places[i].device;
    for (const std::uint32_t pool : places[i].pools)
      if (pool < out.size()) out[pool] = device;
  }
  return out;
}

class Snapshot {
 public:
  Snapshot(const Request& request, Output& out, std::vector<std::int64_t> devices_of_pools)
      : engine_(request.engine),
        rows_(request.engine),
        pickle_(out),
        out_(out),
        start_us_(engine_.overview().start_realtime_us),
        device_of_pool_(std::move(devices_of_pools)) {
    for (const std::int64_t device : device_of_pool_)
      if (device >= 0) devices_.try_emplace(device);
    for (const RegionRow& region : rows_.regions())
      if (Device* device = device_of(region.pool)) device->regions.push_back(region);
    for (std::uint64_t id = 0; id < rows_.size(); ++id) {
      if (!rows_.recorded(id)) continue;
      const BlockRow block = rows_.row(id);
      Device* device = device_of(block.pool);
      if (device != nullptr && block.death == analyze::kNever) device->live.emplace(block.address, block);
    }
    find_blocks_outside_of_regions();
    find_failures();
    if (devices_.size() == 1) return;  // its events need no memory
    rows_.each_event([&](analyze::Moment moment, const RowEvent& event) {
      if (Device* device = device_of(rows_.row(event.block).pool)) device->events.emplace_back(moment, event);
      return true;
    });
  }

  void write() {
    const std::int64_t count = devices_.empty() ? 1 : devices_.rbegin()->first + 1;
    pickle_.begin_dict();
    pickle_.text("segments");
    write_segments();
    pickle_.text("device_traces");
    pickle_.begin_list();
    for (std::int64_t device = 0; device < count; ++device) {
      pickle_.item();
      write_trace(device);
    }
    pickle_.end_list();
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    pickle_.member("vramscope", std::string_view(VRAMSCOPE_VERSION));
    pickle_.end_dict();
    pickle_.end_dict();
    pickle_.finish();
  }

 private:
  // nullptr: none shows the pool's blocks.
  Device* device_of(std::uint32_t pool) {
    const auto found = pool < device_of_pool_.size() ? devices_.find(device_of_pool_[pool]) : devices_.end();
    return found != devices_.end() ? &found->second : nullptr;
  }

  void find_blocks_outside_of_regions() {
    using Place = std::pair<std::uint32_t, std::uint64_t>;  // pool and address
    const std::vector<RegionRow> regions = rows_.regions();
    std::map<Place, std::size_t> taken;
    std::vector<analyze::Moment> returned(regions.size(), analyze::kNever);
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const Place place{regions[i].pool, regions[i].address};
      if (const auto before = taken.find(place); before != taken.end()) returned[before->second] = regions[i].at;
      taken[place] = i;
    }
    taken.clear();
    outside_.resize(rows_.size());
    std::size_t next = 0;
    rows_.each_event([&](analyze::Moment moment, const RowEvent& event) {
      for (; next < regions.size() && regions[next].at <= moment; ++next) {
        if (regions[next].returned)
          taken.erase({regions[next].pool, regions[next].address});
        else
          taken[{regions[next].pool, regions[next].address}] = next;
      }
      if (event.is_free) return true;
      const BlockRow block = rows_.row(event.block);
      auto region = taken.upper_bound({block.pool, block.address});
      const bool known = region != taken.begin() && (--region)->first.first == block.pool &&
                         block.address + block.granted <= region->first.second + regions[region->second].bytes &&
                         (returned[region->second] == analyze::kNever || returned[region->second] > block.death);
      outside_[event.block] = !known;
      return true;
    });
  }

  void find_failures() {
    std::map<std::string_view, Device*> devices;  // by pool
    const auto pools = engine_.pool_names();
    for (std::uint32_t pool = 0; pool < pools.size(); ++pool) devices.try_emplace(pools[pool], device_of(pool));
    const std::vector<analyze::Sample> samples = engine_.samples();
    std::map<const Device*, std::uint64_t> free;
    auto sample = samples.begin();
    for (const analyze::OomEvent& failed : engine_.ooms().events) {
      for (; sample != samples.end() && sample->time_us <= failed.time_us; ++sample)
        if (const auto on = devices_.find(sample->device); on != devices_.end())
          free[&on->second] = sample->total - std::min(sample->total, sample->used);
      if (const auto on = devices.find(failed.pool); on != devices.end() && on->second != nullptr)
        on->second->failures.push_back({failed, free[on->second]});
    }
  }

  Segments segments_of(const Device& device) const {
    Segments out;
    for (const RegionRow& region : device.regions) {
      if (region.returned)
        out.erase(region.address);
      else
        out[region.address].bytes = region.bytes;
    }
    for (const auto& [address, block] : device.live)
      if (const auto after = out.upper_bound(address); !outside_[block.id] && after != out.begin())
        std::prev(after)->second.blocks.push_back(block);
    for (const auto& [address, block] : device.live)
      if (outside_[block.id]) {
        Segment& segment = out[address];
        segment.bytes = std::max(segment.bytes, block.granted);
        segment.blocks.insert(segment.blocks.begin(), block);
      }
    return out;
  }

  void write_segments() {
    pickle_.begin_list();
    for (const auto& [device, content] : devices_)
      for (const auto& [address, segment] : segments_of(content)) {
        std::uint64_t allocated = 0, requested = 0;
        for (const BlockRow& block : segment.blocks) {
          allocated += block.granted;
          requested += block.requested;
        }
        pickle_.item();
        pickle_.begin_dict();
        pickle_.member("device", device);
        pickle_.member("address", address);
        pickle_.member("total_size", segment.bytes);
        pickle_.member("allocated_size", allocated);
        pickle_.member("active_size", allocated);
        pickle_.member("requested_size", requested);
        pickle_.member("stream", std::int64_t{0});
        pickle_.member("segment_type", std::string_view("large"));
        pickle_.text("segment_pool_id");
        pickle_.pair([&] {
          pickle_.integer(0);
          pickle_.integer(0);
        });
        pickle_.member("is_expandable", false);
        pickle_.text("frames");
        frames(0, {});
        pickle_.text("blocks");
        write_blocks(address, segment);
        pickle_.end_dict();
      }
    pickle_.end_list();
  }

  void write_blocks(std::uint64_t address, const Segment& segment) {
    pickle_.begin_list();
    std::uint64_t at = address;
    for (const BlockRow& block : segment.blocks) {
      if (block.address > at) write_block(at, block.address - at, nullptr);
      write_block(block.address, block.granted, &block);
      at = block.address + block.granted;
    }
    if (at < address + segment.bytes) write_block(at, address + segment.bytes - at, nullptr);
    pickle_.end_list();
  }

  void write_block(std::uint64_t address, std::uint64_t bytes, const BlockRow* block) {
    pickle_.item();
    pickle_.begin_dict();
    pickle_.member("address", address);
    pickle_.member("size", bytes);
    pickle_.member("requested_size", block != nullptr ? block->requested : std::uint64_t{0});
    pickle_.member("state", std::string_view(block != nullptr ? "active_allocated" : "inactive"));
    pickle_.text("frames");
    if (block != nullptr)
      frames(block->stack, block->texts->op);
    else
      frames(0, {});
    pickle_.end_dict();
  }

  void write_trace(std::int64_t number) {
    pickle_.begin_list();
    if (const auto found = devices_.find(number); found != devices_.end()) write_events(found->second);
    pickle_.end_list();
  }

  void write_events(const Device& device) {
    std::size_t next_region = 0;
    const auto regions_until = [&](analyze::Moment moment) {
      for (; next_region < device.regions.size() && device.regions[next_region].at <= moment; ++next_region) {
        const RegionRow& region = device.regions[next_region];
        entry(region.returned ? "segment_free" : "segment_alloc", region.address, region.bytes, 0, region.time_us, 0, {});
      }
    };
    std::size_t next_failure = 0;
    const auto failures_before = [&](analyze::Moment moment) {
      for (; next_failure < device.failures.size() && device.failures[next_failure].request.at < moment; ++next_failure)
        failure(device.failures[next_failure]);
    };
    const auto write_event = [&](analyze::Moment moment, const RowEvent& event) {
      failures_before(moment);
      regions_until(moment);
      const BlockRow block = rows_.row(event.block);
      if (device_of(block.pool) != &device) return true;
      const bool alone = outside_[block.id];
      if (alone && !event.is_free) entry("segment_alloc", block.address, block.granted, block.stream, event.time_us, 0, {});
      if (event.is_free) {
        entry("free_requested", block.address, block.granted, block.stream, event.time_us, 0, {});
        entry("free_completed", block.address, block.granted, block.stream, event.time_us, 0, {});
      } else {
        entry("alloc", block.address, block.granted, block.stream, event.time_us, block.stack, block.texts->op);
      }
      if (alone && event.is_free) entry("segment_free", block.address, block.granted, block.stream, event.time_us, 0, {});
      return out_.good();
    };
    if (devices_.size() == 1) rows_.each_event(write_event);
    for (const auto& [moment, event] : device.events)
      if (!write_event(moment, event)) break;
    regions_until(analyze::kNever);
    failures_before(analyze::kNever);
  }

  void entry(std::string_view action, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream, std::uint64_t time_us,
             std::uint32_t stack, std::string_view op) {
    pickle_.item();
    pickle_.begin_dict();
    pickle_.member("action", action);
    pickle_.member("addr", address);
    pickle_.member("size", bytes);
    pickle_.member("stream", stream);
    pickle_.member("time_us", start_us_ + time_us);
    pickle_.text("frames");
    frames(stack, op);
    pickle_.end_dict();
    out_.settle();
  }

  void failure(const Failure& failed) {
    pickle_.item();
    pickle_.begin_dict();
    pickle_.member("action", std::string_view("oom"));
    pickle_.member("device_free", failed.free);
    pickle_.member("size", failed.request.requested);
    pickle_.member("stream", std::int64_t{0});
    pickle_.member("time_us", start_us_ + failed.request.time_us);
    pickle_.text("frames");
    pickle_.begin_list();
    if (!failed.request.op.empty()) frame(failed.request.op, {}, 0);
    if (const auto [file, line] = file_and_line(failed.request.line); line != 0) frame("", file, line);
    pickle_.end_list();
    pickle_.end_dict();
  }

  // Of "model.py:10".
  static std::pair<std::string_view, std::uint64_t> file_and_line(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    std::uint64_t line = 0;
    if (colon != text.npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
    return {text.substr(0, colon), line};
  }

  // Innermost first; the op, where there is one, is the innermost. Written once for each stack and op.
  void frames(std::uint32_t stack, std::string_view op) {
    const auto [known, fresh] = stacks_.try_emplace({stack, std::string(op)}, 0);
    if (!fresh) return pickle_.get(known->second);
    pickle_.begin_list();
    if (!op.empty()) frame(op, {}, 0);
    for (const analyze::Frame& each : engine_.stack(stack))
      frame(each.function.empty() ? fmt::format("{}+{:#x}", each.file, each.offset) : each.function, each.file, each.line);
    pickle_.end_list();
    known->second = pickle_.memoize();
  }

  void frame(std::string_view name, std::string_view file, std::uint64_t line) {
    pickle_.item();
    pickle_.begin_dict();
    pickle_.member("name", name);
    pickle_.member("filename", file);
    pickle_.member("line", line);
    pickle_.end_dict();
  }

  const analyze::Engine& engine_;
  analyze::BlockRows rows_;
  PickleWriter pickle_;
  Output& out_;
  std::uint64_t start_us_;
  std::vector<std::int64_t> device_of_pool_;
  std::map<std::int64_t, Device> devices_;  // by number
  std::vector<bool> outside_;               // of regions, by block
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> stacks_;
};

Status write(const Request& request, Output& out) {
  if (request.engine.main_place() < 0) return fail(std::string(analyze::kNoAllocations));
  std::vector<std::int64_t> devices = devices_of_pools(request.engine);
  if (const auto highest = std::ranges::max_element(devices); highest != devices.end() && *highest >= kMostDevices)
    return fail(fmt::format("torch-snapshot: device {} has too high a number for this format; choose another one", *highest));
  Snapshot(request, out, std::move(devices)).write();
  return {};
}

}  // namespace

const Format kFormat{
    .name = "torch-snapshot", .extension = ".pickle", .opens_in = "PyTorch's memory_viz", .binary = true, .write = write};

}  // namespace vramscope::exporters::torch_snapshot
