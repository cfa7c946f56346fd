// Any sequence of calls of the writer: what is read is what was written, whole, cut off, or kept below a limit.
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <vector>

#include "read_all.h"
#include "support/bytes.h"
#include "trace/writer.h"

namespace {

using namespace vramscope;
using namespace vramscope::trace;
using fuzz::require;

struct Totals {
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
  std::uint64_t live = 0;
  bool operator==(const Totals&) const = default;
};

// What the input asks for, and what a trace of it has to say.
class Script {
 public:
  explicit Script(support::ByteSpan input) : in_(input) {}

  void run(Writer& writer) {
    for (std::uint64_t i = 0; i < 3; ++i)
      pools_.push_back(writer.pool({writer.string(std::string(i + 1, 'p')), 0, Level::tensor, Memory::device, Framework::none}));
    while (in_.left() > 0) one(writer);
    require(writer.finish().has_value());
  }

  std::map<std::uint32_t, Totals> totals;
  std::vector<std::uint64_t> samples;

 private:
  void one(Writer& writer) {
    const std::uint8_t what = in_.fixed<std::uint8_t>();
    const PoolId pool = pools_[what / 16 % pools_.size()];
    seq_ += what % 7;
    const At at{seq_, in_.varint(), {}};
    switch (what % 6) {
      case 0:
      case 1: {
        const SiteId site =
            writer.site({.pool = pool, .requested = in_.varint(), .op = writer.string(std::string(what % 5, 'x'))});
        const std::uint64_t address = 1 + in_.varint() % 64;
        const std::uint64_t granted = in_.varint() % (1u << 30);
        auto& live = live_[{std::to_underlying(pool), address}];
        if (live.first) return;  // one address lives once
        live = {true, granted};
        writer.alloc(at, {site, address, granted, static_cast<std::int64_t>(in_.varint())});
        Totals& sum = totals[std::to_underlying(pool)];
        ++sum.allocs;
        sum.bytes += granted;
        sum.live += granted;
        sum.peak = std::max(sum.peak, sum.live);
        break;
      }
      case 2:
      case 3: {
        const std::uint64_t address = 1 + in_.varint() % 64;
        auto& live = live_[{std::to_underlying(pool), address}];
        const bool matched = writer.free(at, pool, address, what) != kNone;
        require(matched == live.first);
        if (!matched) return;
        live.first = false;
        Totals& sum = totals[std::to_underlying(pool)];
        ++sum.frees;
        sum.live -= live.second;
        break;
      }
      case 4:
        if (what % 2 == 0) {
          writer.append(
              at,
              Mark{what % 4 == 0 ? MarkKind::step : MarkKind::layer, static_cast<MarkEdge>(what % 3), writer.string("m"), 1, {}});
        } else {
          samples.push_back(in_.varint());
          const StringId text = writer.string(std::to_string(samples.back()));
          if (what % 4 == 1)
            writer.append(at, Setting{text, {}});
          else
            writer.append(at, Retrace{.function = text, .traces = samples.back()});
        }
        break;
      default:
        require(writer.flush().has_value());
        break;
    }
  }

  support::ByteReader in_;
  std::vector<PoolId> pools_;
  std::uint64_t seq_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<bool, std::uint64_t>> live_;
};

// The same totals, from the trace alone.
void compare(const Reader& reader, const Script& script) {
  std::map<std::uint32_t, Totals> totals;
  std::vector<std::uint64_t> samples;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> blocks;
  for (std::size_t c = 0; c < reader.chunks(); ++c) {
    const auto chunk = reader.chunk(c);
    require(chunk.has_value());
    std::array<std::size_t, 256> rows{};
    for (const EventKind kind : chunk->kind) {
      const std::size_t row = rows[std::to_underlying(kind)]++;
      if (kind == EventKind::alloc) {
        const Alloc alloc = chunk->tables.alloc.row(row);
        const std::uint32_t pool = std::to_underlying(reader.dictionaries().sites[std::to_underlying(alloc.site)].pool);
        blocks.emplace_back(pool, alloc.granted);
        Totals& sum = totals[pool];
        ++sum.allocs;
        sum.bytes += alloc.granted;
        sum.live += alloc.granted;
        sum.peak = std::max(sum.peak, sum.live);
      } else if (kind == EventKind::free_ && chunk->tables.free.alloc[row] != kNone) {
        const auto& [pool, granted] = blocks.at(chunk->tables.free.alloc[row]);
        ++totals[pool].frees;
        totals[pool].live -= granted;
      } else if (kind == EventKind::omitted) {
        const Omitted omitted = chunk->tables.omitted.row(row);
        Totals& sum = totals[std::to_underlying(omitted.pool)];
        sum.allocs += omitted.allocs;
        sum.frees += omitted.allocs;
        sum.bytes += omitted.bytes;
        sum.peak = std::max(sum.peak, omitted.peak);
      } else if (kind == EventKind::retrace) {
        samples.push_back(chunk->tables.retrace.traces[row]);
      } else if (kind == EventKind::setting) {
        samples.push_back(std::stoull(reader.dictionaries().strings[std::to_underlying(chunk->tables.setting.key[row])]));
      }
    }
  }
  require(totals == script.totals);
  require(samples == script.samples);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const std::string folder = [] {
    std::string name = "/dev/shm/vramscope-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    static const struct Remove {
      std::string name;
      ~Remove() { std::filesystem::remove_all(name); }
    } remove{name};
    return name;
  }();
  const std::string path = folder + "/a.vram";
  Script script({data + 1, size - 1});
  {
    auto writer = Writer::create(path, {.start_realtime_us = 1, .limit_bytes = data[0] < 128 ? 0u : data[0] * 16u});
    require(writer.has_value());
    script.run(*writer);
  }
  const auto reader = Reader::open(path);
  require(reader.has_value() && reader->damage().message.empty() && !reader->damage().truncated);
  compare(*reader, script);
  std::filesystem::remove(path);
  return 0;
}
