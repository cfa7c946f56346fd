#include "maker.h"

#include <algorithm>
#include <functional>

#include "trace/gen/site_flags.h"

namespace vramscope::tracegen {

Result<Maker> Maker::create(const std::filesystem::path& path, const Options& options) {
  auto writer = trace::Writer::create(path, {.start_realtime_us = options.start_realtime_us});
  if (!writer) return std::unexpected(writer.error());
  Maker out(std::move(*writer));
  out.us_per_event_ = options.us_per_event;
  out.shows_pool_ = options.shows_pool;
  out.of_objects_ = options.of_objects;
  out.thread_ = out.writer_.thread({100, out.writer_.string("main")});
  for (int d = 0; d < options.devices; ++d) {
    Bfc::Options pool = options.pool;
    pool.base += static_cast<std::uint64_t>(d) << 40;
    trace::Pool row;
    row.name = out.writer_.string("GPU_" + std::to_string(d) + "_bfc");
    row.device = options.memory == trace::Memory::host ? -1 : d;
    row.level = trace::Level::tensor;
    row.memory = options.memory;
    row.framework = options.framework;
    out.pools_.push_back({Bfc(pool), out.writer_.pool(row)});
  }
  return out;
}

trace::SiteId Maker::site(const Want& want) {
  trace::Site site;
  site.pool = pools_[static_cast<std::size_t>(want.device)].id;
  site.requested = want.bytes;
  site.op = writer_.string(want.op);
  site.region = writer_.string(want.region);
  site.dtype = want.dtype;
  site.shape = writer_.string(want.shape);
  site.flags = of_objects_ ? trace::kSiteObject : 0;
  if (want.line != 0) {
    trace::FrameId frame = writer_.frame({writer_.string("train"), writer_.string(want.file), want.line, 0, {}});
    site.stack = writer_.stack(std::hash<std::string>{}(want.file) ^ want.line, {&frame, 1});
  }
  return writer_.site(site);
}

std::optional<Handle> Maker::alloc(const Want& want) {
  Pool& pool = pools_[static_cast<std::size_t>(want.device)];
  std::uint64_t largest = pool.bfc.largest_free();
  auto given = pool.bfc.allocate(want.bytes);
  trace::SiteId id = site(want);
  if (!given) {
    trace::Oom oom{id, 1, true, pool.bfc.live(), pool.bfc.pool(), largest, pool.bfc.limit()};
    if (!shows_pool_) oom.regions = oom.largest_free = oom.limit = 0;
    writer_.append(now(), oom);
    pool.ooms += 1;
    return std::nullopt;
  }
  if (given->grown && shows_pool_)
    writer_.append(now(), trace::Region{pool.id, given->grown->address, given->grown->bytes, false});
  writer_.alloc(now(), {id, given->address, given->granted, 1});
  pool.peak = std::max(pool.peak, pool.bfc.live());
  pool.largest = std::max(pool.largest, given->granted);
  pool.allocs += 1;
  return Handle{given->address, want.device, given->granted};
}

void Maker::free(const Handle& handle) {
  Pool& pool = pools_[static_cast<std::size_t>(handle.device)];
  pool.bfc.free(handle.address);
  pool.frees += 1;
  writer_.free(now(), pool.id, handle.address, 0);
}

void Maker::mark(trace::MarkKind kind, trace::MarkEdge edge, const std::string& name, std::int64_t number,
                 const std::string& detail) {
  writer_.append(now(), trace::Mark{kind, edge, writer_.string(name), number, writer_.string(detail)});
}

void Maker::tag(const Handle& handle, trace::Category category, const std::string& name, const std::string& layer) {
  writer_.append(now(), trace::Tag{handle.address, handle.granted, category, writer_.string(name), writer_.string(layer)});
}

void Maker::setting(const std::string& key, const std::string& value) {
  writer_.append(now(), trace::Setting{writer_.string(key), writer_.string(value)});
}

void Maker::op_source(const std::string& op, const std::string& file, std::uint64_t line, const std::string& layer) {
  writer_.op_source({writer_.string(op), writer_.string(file), line, writer_.string("build"), writer_.string(layer)});
}

void Maker::source(const std::string& file, trace::SourceState state, const std::map<std::uint64_t, std::string>& lines) {
  const trace::StringId name = writer_.string(file);
  writer_.source_file({name, state, 0});
  for (const auto& [line, text] : lines) writer_.source_line({name, line, writer_.string(text)});
}

void Maker::device_sample(int device, std::uint64_t used, std::uint64_t total, std::uint64_t process) {
  writer_.append(now(), trace::DeviceSample{device, used, total - used, total, 0, process, used - std::min(used, process)});
}

Status Maker::finish() {
  for (Pool& pool : pools_)
    writer_.append(now(), trace::Totals{pool.id, pool.allocs, pool.frees, pool.bfc.live(), pool.peak, pool.largest,
                                        pool.bfc.pool(), pool.ooms, true, 0});
  return writer_.finish();
}

}  // namespace vramscope::tracegen
