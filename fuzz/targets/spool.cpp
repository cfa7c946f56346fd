// A spool as a process left it, with anything written over it: the input is a list of changes, since a whole spool is a megabyte.
// The trace that is made of it has to be readable to its last event.
//
//   0 offset:2 value:8            into the header
//   1 segment:1 offset:1 value:8  into the head of a segment
//   2 segment:1 length:1 bytes    records at the end of a segment
//   3 length:1 bytes              at the end of the file of definitions
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "collect/recover.h"
#include "collect/sample/tick_clock.h"
#include "collect/session.h"
#include "collect/spool/spool_folder.h"
#include "read_all.h"
#include "spool/layout.h"
#include "support/owned_folder.h"

namespace {

using namespace vramscope;
namespace fs = std::filesystem;

constexpr std::uint32_t kNobody = 4'194'303;  // above any pid that is in use
constexpr std::size_t kBytes = spool::kHeaderBytes + spool::kExtentBytes;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  template <typename T>
  T number() {
    T value = 0;
    const auto bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

struct Image {
  std::vector<std::uint8_t> spool = std::vector<std::uint8_t>(kBytes);
  std::vector<std::uint8_t> definitions;

  void put(std::size_t offset, const void* bytes, std::size_t count) {
    if (offset + count <= spool.size()) std::memcpy(spool.data() + offset, bytes, count);
  }
};

void begin(Image& image) {
  auto& header = *reinterpret_cast<spool::Header*>(image.spool.data());
  header.magic = spool::kMagic;
  header.version = spool::kVersion;
  header.header_bytes = spool::kHeaderBytes;
  header.pid = kNobody;
  header.next_seq = 100;
  header.realtime0_ns = 1'700'000'000'000'000'000;
  header.segment_count = spool::kExtentSegments;
  header.pool_count = 1;
  header.pools[0].key = 1;
  for (std::size_t i = 0; i < spool::kExtentSegments; ++i) {
    auto& segment = *reinterpret_cast<spool::SegmentHeader*>(image.spool.data() + spool::kHeaderBytes + i * spool::kSegmentBytes);
    segment.state = i % 2 == 0 ? spool::SegmentState::owned : spool::SegmentState::sealed;
    segment.committed = sizeof segment;
    segment.generation = 1;
    segment.thread = static_cast<std::uint32_t>(i + 1);
    segment.seal = i;
  }
}

void append_records(Image& image, std::size_t index, std::span<const std::uint8_t> bytes) {
  const std::size_t at = spool::kHeaderBytes + index % spool::kExtentSegments * spool::kSegmentBytes;
  auto& segment = *reinterpret_cast<spool::SegmentHeader*>(image.spool.data() + at);
  const std::uint32_t end = segment.committed.load();
  const std::size_t slots = (bytes.size() + spool::kSlotBytes - 1) / spool::kSlotBytes * spool::kSlotBytes;
  if (end < sizeof segment || end > spool::kSegmentBytes || slots > spool::kSegmentBytes - end) return;
  image.put(at + end, bytes.data(), bytes.size());
  segment.committed = static_cast<std::uint32_t>(end + slots);
}

Image make(Input input) {
  Image image;
  begin(image);
  while (!input.empty()) {
    switch (input.number<std::uint8_t>() % 4) {
      case 0: {
        const std::size_t offset = input.number<std::uint16_t>() % sizeof(spool::Header);
        const auto value = input.number<std::uint64_t>();
        image.put(offset, &value, sizeof value);
        break;
      }
      case 1: {
        const std::size_t segment = input.number<std::uint8_t>() % spool::kExtentSegments;
        const std::size_t offset = input.number<std::uint8_t>() % sizeof(spool::SegmentHeader);
        const auto value = input.number<std::uint64_t>();
        image.put(spool::kHeaderBytes + segment * spool::kSegmentBytes + offset, &value, sizeof value);
        break;
      }
      case 2: {
        const auto segment = input.number<std::uint8_t>();
        const auto length = input.number<std::uint8_t>();
        append_records(image, segment, input.take(length));
        break;
      }
      default: {
        const auto bytes = input.take(input.number<std::uint8_t>());
        image.definitions.insert(image.definitions.end(), bytes.begin(), bytes.end());
      }
    }
  }
  return image;
}

void write_file(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Image image = make(Input(data, size));
  const fs::path place = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  const auto folder = support::OwnedFolder::create(place, "vramscope-fuzz-").value();
  write_file(folder.path() / "1-0.spool", image.spool);
  write_file(folder.path() / "1-0.lock", {});
  write_file(folder.path() / "1-0.defs", image.definitions);
  collect::CollectOptions options;
  options.output = options.spool_folder = folder.path();
  options.host = "fuzz";
  options.say = [](const std::string&) {};
  static collect::TickClock clock;
  static collect::Sampler no_samples(0);
  if (auto session = collect::Session::open(folder.path() / "1-0.spool", options, clock, no_samples)) {
    clock.widen_base((*session)->header());
    const collect::TraceInfo info = (*session)->finish({});
    if (info.complete) fuzz::require_whole(info.path);
    (*session)->remove_files();
  }
  folder.remove([](std::string_view name) { return collect::is_spool_file(name) || name.ends_with(".vram"); });
  return 0;
}
