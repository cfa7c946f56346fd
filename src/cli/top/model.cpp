#include "cli/top/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <ranges>
#include <span>

#include "analyze/framework.h"
#include "cli/top/spool_totals.h"
#include "cli/top/trace_status.h"
#include "collect/sample/proc.h"
#include "support/units.h"

namespace vramscope::cli::top {

namespace {

std::string name_of(spool::Framework framework) {
  if (framework == spool::Framework::cuda) return "CUDA";
  const std::string_view name = analyze::framework(framework).name;
  return name.empty() ? "recorded" : std::string(name);
}

// What a framework handed out, on its devices if it has any, else on the host. For a program without a framework: what it
// allocated from the driver.
void add_pools(Process& process, const spool::Header& header) {
  const std::uint32_t count = std::min<std::uint32_t>(header.pool_count.load(std::memory_order_acquire), spool::kMaxPools);
  const std::span pools(header.pools, count);
  const auto on_device = [](spool::Level level) {
    return [level](const spool::Pool& pool) { return pool.level == level && pool.device >= 0; };
  };
  const auto on_host = [](const spool::Pool& pool) { return pool.level == spool::Level::tensor && pool.device < 0; };
  const auto add = [&](const auto& counts) {
    for (const spool::Pool& pool : pools | std::views::filter(counts)) {
      process.framework = name_of(pool.level == spool::Level::driver ? spool::Framework::cuda : pool.framework);
      process.gpu = std::max(process.gpu, pool.device);
      process.live += pool.live_bytes.load(std::memory_order_relaxed);
      process.peak += pool.peak_bytes.load(std::memory_order_relaxed);
      process.pool += pool.region_bytes.load(std::memory_order_relaxed);
      process.limit += pool.limit_bytes.load(std::memory_order_relaxed);
      process.ooms += pool.ooms.load(std::memory_order_relaxed);
    }
  };
  if (std::ranges::any_of(pools, on_device(spool::Level::tensor)))
    add(on_device(spool::Level::tensor));
  else if (std::ranges::any_of(pools, on_host))
    add(on_host);
  else
    add(on_device(spool::Level::driver));
}

std::string command_of(std::uint32_t pid) {
  std::string out = collect::proc::read_file(fmt::format("/proc/{}/cmdline", pid));
  while (!out.empty() && out.back() == '\0') out.pop_back();
  std::replace(out.begin(), out.end(), '\0', ' ');
  return support::short_command(out);
}

}  // namespace

struct Gatherer::Known {
  explicit Known(SpoolTotals opened) : totals(std::move(opened)) {}
  SpoolTotals totals;
  std::deque<std::pair<std::uint64_t, Bytes>> history;
  TraceStatus inside;
};

Gatherer::Gatherer() : nvml_(std::make_unique<collect::Nvml>()) {}
Gatherer::~Gatherer() = default;

State Gatherer::gather(std::uint64_t now_us) {
  State state;
  state.time_us = now_us;
  read_spools(state, now_us);
  read_devices(state);
  return state;
}

void Gatherer::wait_for_traces() const {
  for (const auto& [path, known] : known_) known->inside.wait();
}

void Gatherer::read_spools(State& state, std::uint64_t now_us) {
  const auto paths = find_spools();
  std::erase_if(known_, [&](const auto& entry) { return std::find(paths.begin(), paths.end(), entry.first) == paths.end(); });
  for (const auto& path : paths) {
    auto& known = known_[path.string()];
    if (!known) {
      auto opened = SpoolTotals::open(path);
      if (!opened) {
        known_.erase(path.string());
        continue;
      }
      known = std::make_unique<Known>(std::move(*opened));
    }
    if (!known->totals.alive()) continue;
    const spool::Header& header = known->totals.header();
    Process process;
    process.pid = header.pid;
    process.command = support::short_command(known->totals.command());
    process.recorded = true;
    process.framework = name_of(spool::Framework::none);
    add_pools(process, header);
    known->history.emplace_back(now_us, process.live);
    while (now_us - known->history.front().first > kHistoryUs) known->history.pop_front();
    process.history.assign(known->history.begin(), known->history.end());
    known->inside.fill(process, path.parent_path(), now_us);
    state.processes.push_back(std::move(process));
  }
}

void Gatherer::read_devices(State& state) {
  state.problem = nvml_->problem();
  for (std::size_t i = 0; i < nvml_->devices(); ++i) {
    Gpu gpu;
    gpu.index = static_cast<int>(i);
    gpu.name = nvml_->name(i);
    collect::DeviceMemory memory;
    if (nvml_->memory(i, memory)) {
      gpu.used = memory.used;
      gpu.total = memory.total;
    }
    std::vector<collect::DeviceProcess> listed;
    if (nvml_->processes(i, listed)) {
      for (const collect::DeviceProcess& seen : listed) {
        const auto same = std::find_if(state.processes.begin(), state.processes.end(), [&](const Process& p) {
          const auto pids = collect::proc::namespace_pids(p.pid);
          return p.pid == seen.pid || std::find(pids.begin(), pids.end(), seen.pid) != pids.end();
        });
        const bool known = seen.bytes != std::numeric_limits<std::uint64_t>::max();
        if (same != state.processes.end()) {
          same->gpu = gpu.index;
          if (known) same->device = same->device.value_or(0) + seen.bytes;
          if (known) gpu.recorded += seen.bytes;
          continue;
        }
        Process other;
        other.pid = seen.pid;
        other.command = command_of(seen.pid);
        other.gpu = gpu.index;
        if (known) other.device = seen.bytes;
        state.processes.push_back(std::move(other));
      }
    }
    for (const Process& process : state.processes)
      if (process.recorded && process.gpu == gpu.index) {
        gpu.live += process.live;
        gpu.pool += std::max(process.pool, process.live);
      }
    state.gpus.push_back(std::move(gpu));
  }
}

}  // namespace vramscope::cli::top
