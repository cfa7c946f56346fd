// The part of a session that samples the devices and the host.
#include <algorithm>

#include "collect/session.h"

namespace vramscope::collect {

namespace {
constexpr std::uint64_t kRepeatUs = 1'000'000;  // an unchanged sample is written once per second
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

std::size_t Session::device_index(std::int64_t ordinal) const {
  return sampler_.device_index(
      ordinal, trace_ != nullptr ? trace_->recorded_setting("env.CUDA_VISIBLE_DEVICES").value_or("") : std::string());
}

bool Session::uses_device(std::size_t device) const {
  const spool::Header& header = spool_.header();
  const std::uint32_t count = std::min<std::uint32_t>(header.pool_count.load(std::memory_order_acquire), spool::kMaxPools);
  for (std::uint32_t i = 0; i < count; ++i)
    if (header.pools[i].device >= 0 && device_index(header.pools[i].device) == device) return true;
  return false;
}

void Session::note_context(const spool::ContextRecord& record) {
  if (!context_seen_) context_sample_us_ = sampler_.last_sample_us();
  context_seen_ = true;
  contexts_.push_back(record);
  identity_.context_recorded(device_index(static_cast<std::int64_t>(record.device)), sampler_.last_sample_us());
}

void Session::sample(std::uint64_t now_us) {
  // It may have left the devices by the time of the sample, and its last sample would claim that it held nothing at the end.
  if (proc::is_exiting(process_)) return;
  before_.resize(sampler_.devices());
  last_device_.resize(sampler_.devices());
  const std::uint64_t at = since_start_us();
  const bool repeat = now_us - last_sample_written_us_ >= kRepeatUs;
  for (std::size_t device = 0; device < sampler_.devices(); ++device) {
    const DeviceReading& reading = sampler_.now(device);
    identity_.learn(device, reading);
    const auto process = identity_.bytes(device, reading);
    // A process is often on the device before its spool exists: an older sample shows what was used without it.
    if (process && identity_.is_known() && !before_[device]) before_[device] = sampler_.without(device, identity_);
    const bool uses = uses_device(device);
    const bool there = process && (identity_.is_known() || uses);
    if (trace_ == nullptr || (!there && !uses)) continue;
    trace::DeviceSample row;
    row.device = static_cast<std::int64_t>(device);
    row.used = reading.memory.used;
    row.free = reading.memory.free;
    row.total = reading.memory.total;
    row.reserved = reading.memory.reserved;
    row.process = there ? *process : identity_.is_known() ? 0 : kNotIdentifiable;
    row.others = kNotIdentifiable;
    if (row.process != kNotIdentifiable) {
      row.others = 0;
      for (const DeviceProcess& each : reading.processes)
        if (each.bytes != kNotIdentifiable) row.others += each.bytes;
      row.others -= std::min(row.others, row.process);
    }
    if (row == last_device_[device] && !repeat) continue;
    last_device_[device] = row;
    trace_->append(at, row);
  }
  if (trace_ == nullptr) return;
  write_contexts(false);
  const trace::HostSample host{proc::resident_bytes(process_), pinned_bytes()};
  if (repeat) last_sample_written_us_ = now_us;
  if (host.rss == 0 || (host == last_host_ && !repeat)) return;
  last_host_ = host;
  trace_->append(at, host);
}

// A context fills while it is being created, for a tenth of a second and more: its size is what the driver reports right after,
// minus what was used before the process was on the device. With the first context, the device also takes a few megabytes that
// it assigns to no process; they are not part of it. This is known as soon as the device lists the process.
void Session::write_contexts(bool last_call) {
  if (trace_ == nullptr) return;
  before_.resize(sampler_.devices());
  std::erase_if(contexts_, [&](const spool::ContextRecord& record) {
    const std::size_t device = device_index(static_cast<std::int64_t>(record.device));
    trace::Context row;
    row.device = static_cast<std::int64_t>(record.device);
    row.free = record.free_bytes;
    row.total = record.total_bytes;
    row.bytes = trace::kNone;
    if (device < before_.size() && !identity_.is_hidden(device)) {
      const DeviceReading& reading = sampler_.now(device);
      const bool listed = identity_.bytes(device, reading).has_value();
      if (!last_call && !(listed && identity_.is_known())) return false;
      // While its number is unknown, other processes that appeared on the device would be counted as part of the context.
      if (!before_[device] && (identity_.is_known() || !listed)) before_[device] = sampler_.without(device, identity_);
      if (before_[device]) {
        const std::uint64_t used = record.total_bytes - std::min(record.total_bytes, record.free_bytes);
        const std::uint64_t nobodys = reading.unattributed().value_or(0),
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
