// pprof, as jax.profiler.device_memory_profile() and heap profilers write it: what is live at one instant, by call stack.
#include <algorithm>
#include <unordered_map>

#include "importers/importer.h"
#include "importers/lines.h"
#include "importers/wire_reader.h"
#include "support/secret_hash.h"

namespace vramscope::importers::pprof {

extern const Importer kImporter;

namespace {

// Fields of perftools.profiles.Profile.
constexpr std::uint32_t kSampleType = 1, kSample = 2, kLocation = 4, kFunction = 5, kStringTable = 6, kTimeNanos = 9;
// Blocks of one sample that are added one by one; beyond, they are added as one.
constexpr std::size_t kLongestDevice = 256, kDeepest = 128;
constexpr std::uint64_t kMostBlocks = 10'000, kMostBlocksInAll = 1'000'000;

struct Function {
  std::uint64_t name = 0, file = 0;
};
struct Line {
  std::uint64_t function = 0, line = 0;
};
struct Location {
  std::vector<Line> lines;
  std::vector<std::uint32_t> frames;  // of the lines, once they are needed
};

class Reading {
 public:
  explicit Reading(Profile& into) : into_(into) {}

  Status read(std::string_view bytes) {
    std::vector<std::string_view> samples;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> types;
    const bool whole = each_field(bytes, [&](const WireField& field) {
      if (field.number == kStringTable && field.is_text) strings_.push_back(field.text);
      if (field.number == kSample && field.is_text) samples.push_back(field.text);
      if (field.number == kLocation && field.is_text) location(field.text);
      if (field.number == kFunction && field.is_text) function(field.text);
      if (field.number == kTimeNanos && !field.is_text) into_.starts(field.value / 1000);
      if (field.number == kSampleType && field.is_text) types.push_back(pair_in(field.text));
    });
    if (!whole) return fail("damaged pprof file: it is cut off");
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string_view type = string(types[i].first);
      if (type == "space" || type == "inuse_space") bytes_at_ = i;
      if (type == "allocations" || type == "inuse_objects") count_at_ = i;
    }
    if (!bytes_at_) return fail("a pprof file that is not about memory: it has no space or inuse_space");
    for (const std::string_view sample : samples) add(sample);
    into_.lacks_times();
    into_.lacks("addresses, steps, layers, ops, dtypes and shapes");
    return {};
  }

 private:
  static std::pair<std::uint64_t, std::uint64_t> pair_in(std::string_view bytes) {
    std::pair<std::uint64_t, std::uint64_t> out;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == 1) out.first = field.value;
      if (field.number == 2) out.second = field.value;
    });
    return out;
  }
  std::string_view string(std::uint64_t id) const { return id < strings_.size() ? strings_[id] : std::string_view(); }

  void location(std::string_view bytes) {
    std::uint64_t id = 0;
    std::vector<Line> lines;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == 1) id = field.value;
      if (field.number != 4 || !field.is_text) return;
      const auto [function, line] = pair_in(field.text);
      lines.push_back({function, line});
    });
    locations_[id] = {std::move(lines), {}};
  }

  void function(std::string_view bytes) {
    std::uint64_t id = 0;
    Function out;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) out.name = field.value;
      if (field.number == 4) out.file = field.value;
    });
    functions_[id] = out;
  }

  void add(std::string_view sample) {
    std::vector<std::uint32_t> frames;
    std::vector<std::uint64_t> values;
    std::string_view device, kind;
    each_field(sample, [&](const WireField& field) {
      if (field.number == 1) each_number(field, [&](std::uint64_t id) { add_frames(id, frames); });
      if (field.number == 2) each_number(field, [&](std::uint64_t value) { values.push_back(value); });
      if (field.number != 3 || !field.is_text) return;
      const auto [key, text] = pair_in(field.text);
      if (string(key) == "device" || string(key) == "place") device = string(text);
      if (string(key) == "kind") kind = string(text);
    });
    const std::uint64_t bytes = *bytes_at_ < values.size() ? values[*bytes_at_] : 0;
    std::uint64_t count = count_at_ && *count_at_ < values.size() ? values[*count_at_] : 1;
    if (bytes == 0 || bytes > std::uint64_t{1} << 56) return;
    if (count == 0 || count > kMostBlocks || blocks_ + count > kMostBlocksInAll || count > bytes) count = 1;
    blocks_ += count;
    const Details details{.region = into_.text_in_file(kind), .stack = into_.stack(frames)};
    const std::uint32_t pool = into_.pool(pool_of(device.substr(0, kLongestDevice)));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t size = bytes / count + (i < bytes % count ? 1 : 0);
      into_.was_live(pool, address_, size, size, details);
      address_ += size;
    }
  }

  void add_frames(std::uint64_t id, std::vector<std::uint32_t>& frames) {
    const auto found = locations_.find(id);
    if (found == locations_.end() || frames.size() >= kDeepest) return;
    auto& [lines, known] = found->second;
    for (std::size_t i = known.size(); i < std::min(lines.size(), kDeepest); ++i) known.push_back(frame(lines[i]));
    frames.insert(frames.end(), known.begin(),
                  known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kDeepest - frames.size())));
  }

  std::uint32_t frame(const Line& line) {
    const auto function = functions_.find(line.function);
    const Function known = function == functions_.end() ? Function() : function->second;
    return into_.frame({into_.text_in_file(string(known.name)), into_.text_in_file(string(known.file)), line.line});
  }

  // JAX calls devices "cuda:0", "gpu:0" or "TFRT_CPU_0"; our own files have "GPU 0".
  static PoolInfo pool_of(std::string_view device) {
    PoolInfo out{device.empty() ? "device memory" : device, 0, trace::Memory::device, trace::Framework::jax};
    if (device.find("CPU") != device.npos || device.find("cpu") != device.npos || device.find("host") != device.npos) {
      out.device = -1;
      out.memory = trace::Memory::host;
    } else if (const std::size_t digits = device.find_last_not_of("0123456789"); digits + 1 < device.size()) {
      out.device = static_cast<std::int64_t>(std::min<std::uint64_t>(1023, number_in(device.substr(digits + 1)).value_or(0)));
    }
    return out;
  }

  Profile& into_;
  std::vector<std::string_view> strings_;
  std::unordered_map<std::uint64_t, Location, support::SecretHash> locations_;
  std::unordered_map<std::uint64_t, Function, support::SecretHash> functions_;
  std::optional<std::size_t> bytes_at_, count_at_;
  std::uint64_t blocks_ = 0, address_ = std::uint64_t{1} << 40;
};

bool recognizes(std::string_view bytes) {
  WireReader reader(bytes);
  const auto first = reader.next();
  if (!first || first->number != kSampleType || !first->is_text || first->text.empty()) return false;
  bool numbers = true;
  const bool whole = each_field(first->text, [&](const WireField& field) { numbers &= !field.is_text && field.number <= 2; });
  return whole && numbers;
}

}  // namespace

const Importer kImporter{.name = "pprof",
                         .title = "a memory profile in pprof format, such as JAX's",
                         .recognizes = recognizes,
                         .read = [](std::string_view bytes, Profile& into) { return Reading(into).read(bytes); }};

}  // namespace vramscope::importers::pprof
