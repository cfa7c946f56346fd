// The part of a session that looks at the devices and the host.
#include <algorithm>

#include "collect/session.h"

namespace vramscope::collect {

namespace {
constexpr std::uint64_t kRepeatUs = 1'000'000;  // an unchanged sample is written once a second
}

std::uint64_t Session::pinned_bytes() const {
  const spool::Header& header = spool_.header();
  const std::uint32_t count = std::min<std::uint32_t>(header.pool_count.load(std::memory_order_acquire), spool::kMaxPools);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    if (header.pools[i].memory == spool::Memory::pinned && header.pools[i].level == spool::Level::driver)
      sum += header.pools[i].live_bytes.load(std::memory_order_relaxed);
  return sum;
}

bool Session::uses_device(std::size_t device) const {
  const spool::Header& header = spool_.header();
  const std::string visible = trace_ != nullptr ? trace_->recorded_setting("env.CUDA_VISIBLE_DEVICES").value_or("") : "";
  const std::uint32_t count = std::min<std::uint32_t>(header.pool_count.load(std::memory_order_acquire), spool::kMaxPools);
  for (std::uint32_t i = 0; i < count; ++i)
    if (header.pools[i].device >= 0 && sampler_.device_index(header.pools[i].device, visible) == device) return true;
  return false;
}

void Session::sample(std::uint64_t now_us) {
  before_.resize(sampler_.devices());
  last_device_.resize(sampler_.devices());
  const std::uint64_t at = since_start_us();
  const bool repeat = now_us - last_sample_written_us_ >= kRepeatUs;
  for (std::size_t device = 0; device < sampler_.devices(); ++device) {
    const DeviceLook& look = sampler_.now(device);
    const auto process = identity_.bytes(device, look);
    // A process is often on the device before its spool exists: an older look knows what was used without it.
    if (process && !before_[device]) before_[device] = sampler_.without(device, identity_);
    const bool uses = uses_device(device);
    const bool there = process && (identity_.is_certain() || uses);
    if (trace_ == nullptr || (!there && !uses)) continue;
    trace::DeviceSample row;
    row.device = static_cast<std::int64_t>(device);
    row.used = look.memory.used;
    row.free = look.memory.free;
    row.total = look.memory.total;
    row.reserved = look.memory.reserved;
    row.process = there ? *process : identity_.is_certain() ? 0 : kNotIdentifiable;
    row.others = kNotIdentifiable;
    if (row.process != kNotIdentifiable) {
      row.others = 0;
      for (const DeviceProcess& each : look.processes)
        if (each.bytes != kNotIdentifiable) row.others += each.bytes;
      row.others -= std::min(row.others, row.process);
    }
    if (row == last_device_[device] && !repeat) continue;
    last_device_[device] = row;
    trace_->append(at, row);
  }
  if (trace_ == nullptr) return;
  write_contexts(false);
  const trace::HostSample host{proc::resident_bytes(pid_), pinned_bytes()};
  if (repeat) last_sample_written_us_ = now_us;
  if (host.rss == 0 || (host == last_host_ && !repeat)) return;
  last_host_ = host;
  trace_->append(at, host);
}

// A context fills while it is being made, for a tenth of a second and more: its size is what the driver says right after, less
// what was used when the process was not on the device yet. With the first context the device also takes a few megabytes that it
// counts for no process: not part of it. That is known as soon as the device lists the process.
void Session::write_contexts(bool last_call) {
  if (trace_ == nullptr) return;
  before_.resize(sampler_.devices());
  const std::string visible = trace_->recorded_setting("env.CUDA_VISIBLE_DEVICES").value_or("");
  std::erase_if(contexts_, [&](const spool::ContextRecord& record) {
    const std::size_t device = sampler_.device_index(static_cast<std::int64_t>(record.device), visible);
    trace::Context row;
    row.device = static_cast<std::int64_t>(record.device);
    row.free = record.free_bytes;
    row.total = record.total_bytes;
    row.bytes = trace::kNone;
    if (device < before_.size()) {
      const DeviceLook& look = sampler_.now(device);
      if (!identity_.bytes(device, look) && !last_call) return false;
      if (!before_[device]) before_[device] = sampler_.without(device, identity_);
      if (before_[device]) {
        const std::uint64_t used = record.total_bytes - std::min(record.total_bytes, record.free_bytes);
        const std::uint64_t nobodys = look.unattributed().value_or(0),
                            nobodys_before = before_[device]->unattributed().value_or(0);
        const std::uint64_t not_its_own = before_[device]->memory.used + nobodys - std::min(nobodys, nobodys_before);
        row.bytes = used - std::min(used, not_its_own);
      }
    }
    trace_->append(since_start_us(), row);
    return true;
  });
}

}  // namespace vramscope::collect
