#include "recording.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

namespace fakegpu_test {
namespace {

namespace fs = std::filesystem;
using spool::RecordKind;

std::vector<char> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename Record>
const Record& as(const spool::RecordHead& head) {
  return *reinterpret_cast<const Record*>(&head);
}

Event event_of(const spool::RecordHead& head, std::uint32_t thread, std::map<std::uint64_t, std::uint32_t>& owners) {
  Event event;
  event.head = head;
  event.thread = thread;
  const bool extended = (head.flags & spool::kFlagExtended) != 0;
  switch (head.kind) {
    case RecordKind::alloc:
    case RecordKind::oom: {
      const auto& record = as<spool::AllocRecord>(head);
      event.address = record.address;
      event.bytes = record.granted;
      event.requested = record.requested;
      if (extended) {
        const auto& extra = *reinterpret_cast<const spool::AllocExtra*>(&record + 1);
        event.stream = extra.stream;
        event.handle = extra.handle;
        owners[head.seq] = extra.owner;
      }
      break;
    }
    case RecordKind::free:
    case RecordKind::free_cancelled: {
      const auto& record = as<spool::FreeRecord>(head);
      event.address = record.address;
      if (extended) event.stream = reinterpret_cast<const spool::FreeExtra*>(&record + 1)->stream;
      break;
    }
    case RecordKind::region:
      event.address = as<spool::RegionRecord>(head).address;
      event.bytes = as<spool::RegionRecord>(head).bytes;
      break;
    case RecordKind::context:
      event.address = as<spool::ContextRecord>(head).device;
      event.bytes = as<spool::ContextRecord>(head).free_bytes;
      break;
    default:
      break;
  }
  return event;
}

void read_spool(const fs::path& path, Recording& recording) {
  const std::vector<char> bytes = bytes_of(path);
  const auto& header = *reinterpret_cast<const spool::Header*>(bytes.data());
  std::map<std::uint32_t, std::string> texts;
  std::map<std::uint64_t, std::uint32_t> owners;
  for (std::uint32_t i = 0; i < header.segment_count.load(); ++i) {
    const char* segment = bytes.data() + spool::kHeaderBytes + i * spool::kSegmentBytes;
    const auto& head = *reinterpret_cast<const spool::SegmentHeader*>(segment);
    if (head.state.load() == spool::SegmentState::free) continue;
    for (std::uint32_t at = sizeof head; at < head.committed.load();) {
      const auto& record = *reinterpret_cast<const spool::RecordHead*>(segment + at);
      if (record.kind == RecordKind::string) {
        const auto& text = as<spool::StringRecord>(record);
        texts[text.id].assign(reinterpret_cast<const char*>(&text + 1), text.bytes);
      } else if (record.seq != 0) {
        recording.events.push_back(event_of(record, head.thread, owners));
      }
      at += record.slots * static_cast<std::uint32_t>(spool::kSlotBytes);
    }
  }
  std::ranges::sort(recording.events, {}, [](const Event& event) { return event.head.seq; });
  for (Event& event : recording.events) {
    if (const auto owner = owners.find(event.head.seq); owner != owners.end()) event.owner = texts[owner->second];
  }
  for (std::uint32_t i = 0; i < header.pool_count.load(); ++i) {
    const spool::Pool& pool = header.pools[i];
    recording.pools.push_back({texts[pool.name], pool.device, pool.memory, pool.allocs, pool.frees, pool.live_bytes,
                               pool.peak_bytes, pool.region_bytes, pool.region_peak, pool.ooms});
  }
  for (const auto& lost : header.lost) recording.lost += lost.load();
}

void run_child(const std::string& program, const std::vector<std::string>& arguments, const Environment& environment,
               int output) {
  const fs::path path = fs::path(VS_BUILD_DIR) / "tests/fakegpu" / program;
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  dup2(output, STDOUT_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  execv(path.c_str(), argv.data());
  _exit(127);
}

struct Replay {
  std::map<std::pair<std::uint8_t, std::uint64_t>, std::uint64_t> live;
  std::map<std::uint8_t, PoolTotals> totals;
  std::map<std::pair<std::uint8_t, std::uint64_t>, std::uint64_t> freed;  // for cancellation
};

std::string describe(const Event& event, const char* what) {
  char text[160];
  std::snprintf(text, sizeof text, "record %llu, pool %u, address %#llx: %s", static_cast<unsigned long long>(event.head.seq),
                event.head.pool, static_cast<unsigned long long>(event.address), what);
  return text;
}

}  // namespace

const PoolTotals* Recording::pool(const std::string& name) const {
  const auto found = std::ranges::find(pools, name, &PoolTotals::name);
  return found == pools.end() ? nullptr : &*found;
}

std::vector<Event> Recording::of_kind(spool::RecordKind kind) const {
  std::vector<Event> found;
  std::ranges::copy_if(events, std::back_inserter(found), [&](const Event& event) { return event.head.kind == kind; });
  return found;
}

std::string Recording::contradiction() const {
  Replay replay;
  std::uint64_t last = 0;
  for (const Event& event : events) {
    if (event.head.seq == last) return describe(event, "the number was used twice");
    last = event.head.seq;
    const auto key = std::pair{event.head.pool, event.address};
    PoolTotals& totals = replay.totals[event.head.pool];
    const bool counted = (event.head.flags & spool::kFlagImported) == 0;
    if (event.head.kind == RecordKind::alloc) {
      if (!replay.live.emplace(key, event.bytes).second) return describe(event, "alive twice");
      if (!counted) continue;
      ++totals.allocs;
      totals.live += event.bytes;
      totals.peak = std::max(totals.peak, totals.live);
    } else if (event.head.kind == RecordKind::free) {
      const auto found = replay.live.find(key);
      if (found == replay.live.end()) return describe(event, "freed but not alive");
      ++totals.frees;
      totals.live -= found->second;
      replay.freed[key] = found->second;
      replay.live.erase(found);
    } else if (event.head.kind == RecordKind::free_cancelled) {
      if (!replay.freed.contains(key)) return describe(event, "cancelled without a free");
      --totals.frees;
      totals.live += replay.freed[key];
      if (!replay.live.emplace(key, replay.freed[key]).second) return describe(event, "alive twice after a cancelled free");
    }
  }
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (pools[i].name.ends_with("imported")) continue;  // not counted
    const PoolTotals& replayed = replay.totals[static_cast<std::uint8_t>(i)];
    if (replayed.allocs != pools[i].allocs || replayed.frees != pools[i].frees || replayed.live != pools[i].live)
      return pools[i].name + ": the totals differ from the events";
  }
  return {};
}

Recording record(const std::string& program, const std::vector<std::string>& arguments, const Environment& environment,
                 bool injected) {
  char folder[] = "/tmp/vramscope-fakegpu-XXXXXX";
  if (mkdtemp(folder) == nullptr) return {};
  Environment all{{"LD_LIBRARY_PATH", std::string(VS_BUILD_DIR) + "/tests/fakegpu"},
                  {injected ? "VRAMSCOPE_SPOOL" : "LATE_SPOOL", folder},
                  {"VRAMSCOPE_SPOOL_LIMIT", "268435456"}};
  if (injected) all["LD_PRELOAD"] = std::string(VS_BUILD_DIR) + "/libvramscope_inject.so";
  for (const auto& [name, value] : environment) all[name] = value;
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_child(program, arguments, all, ends[1]);
  }
  close(ends[1]);
  Recording recording;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    recording.output.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  recording.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".spool") continue;
    ++recording.spools;
    const bool own = entry.path().filename().string().starts_with(std::to_string(child) + "-");
    read_spool(entry.path(), own ? recording : recording.children.emplace_back());
  }
  fs::remove_all(folder);
  return recording;
}

}  // namespace fakegpu_test
