// The C ABI of include/vramscope/recorder.h.
#include <string.h>

#include <cstdint>

#include "capture/cuda/attach.h"
#include "capture/elf_symbols.h"
#include "capture/framework.h"
#include "capture/patch.h"
#include "capture/python/startup.h"
#include "capture/reported_steps.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/setup.h"
#include "record/state.h"
#include "record/text.h"
#include "vramscope/recorder.h"

#define VS_EXPORT extern "C" __attribute__((visibility("default")))

namespace vramscope::capture {
namespace {

__attribute__((constructor)) void library_loaded() {
  record::read_environment();
  python::prepare();
}

void copy_text(char* out, std::size_t capacity, const char* text) {
  std::size_t i = 0;
  for (; text != nullptr && text[i] != '\0' && i + 1 < capacity; ++i) out[i] = text[i];
  out[i] = '\0';
}

void fill(vramscope_pool_info& out, std::uint8_t index) {
  const spool::Pool& pool = *record::pool_totals(index);
  constexpr auto relaxed = std::memory_order_relaxed;
  out = {};
  copy_text(out.name, sizeof out.name, record::pool_name(index));
  const Framework* const framework = framework_of(pool.framework);
  const char* const driver = pool.framework == record::Framework::cuda ? "cuda" : "none";
  copy_text(out.framework, sizeof out.framework, framework != nullptr ? framework->word : driver);
  out.device = pool.device;
  out.level = static_cast<std::int32_t>(pool.level);
  out.memory = static_cast<std::int32_t>(pool.memory);
  out.order_exact = (pool.flags.load(relaxed) & spool::kPoolOrderExact) != 0;
  out.allocs = pool.allocs.load(relaxed);
  out.frees = pool.frees.load(relaxed);
  out.current_bytes = pool.live_bytes.load(relaxed);
  out.peak_bytes = pool.window_peak.load(relaxed);
  out.largest_bytes = pool.largest_bytes.load(relaxed);
  out.region_bytes = pool.region_bytes.load(relaxed);
  out.region_peak_bytes = pool.region_peak.load(relaxed);
  out.limit_bytes = pool.limit_bytes.load(relaxed);
  out.ooms = pool.ooms.load(relaxed);
  out.before_bytes = pool.before_bytes.load(relaxed);
}

std::atomic<bool> g_steps_reported;

}  // namespace

bool steps_are_reported() { return g_steps_reported.load(std::memory_order_relaxed); }

}  // namespace vramscope::capture

using namespace vramscope;

VS_EXPORT int vramscope_recording(void) { return record::active() ? 1 : 0; }

VS_EXPORT void vramscope_mark(int kind, int edge, const char* name, int64_t number, const char* detail) {
  if (kind == static_cast<int>(record::MarkKind::step)) capture::g_steps_reported.store(true, std::memory_order_relaxed);
  const std::uint8_t flags = static_cast<std::uint8_t>(edge == 1 ? +spool::kFlagBegin : edge == 2 ? +spool::kFlagEnd : 0);
  if (kind > 0 && kind < 0xffff) record::mark(static_cast<record::MarkKind>(kind), flags, name, number, detail);
}

VS_EXPORT void vramscope_tag(uint64_t address, uint64_t bytes, int category, const char* name, const char* layer) {
  if (category < 0 || category > 255) return;
  const auto what = static_cast<record::Category>(category);
  for (const capture::Framework* framework : capture::frameworks())
    if (framework->tag != nullptr && framework->tag(address, what, name, layer)) return;
  record::tag(address, bytes, what, name, layer);
}

VS_EXPORT void vramscope_setting(const char* key, const char* value) { record::setting(key, value); }

VS_EXPORT void vramscope_report(int kind, const char* const* texts, int text_count, const uint64_t* numbers, int number_count) {
  const base::ReportShape shape = base::report_shape(static_cast<std::uint32_t>(kind));
  if (!shape.reported() || text_count != shape.texts || number_count != shape.numbers) return;
  if (texts != nullptr && numbers != nullptr) record::report(static_cast<std::uint16_t>(kind), texts, numbers);
}

VS_EXPORT void vramscope_python_watches(const char* framework) {
  if (const capture::Framework* const known = capture::framework_called(framework)) capture::python::framework_watched(*known);
}

VS_EXPORT void vramscope_op_source(const char* op, const char* file, int line, const char* function, const char* layer) {
  record::op_source(op, file, line > 0 ? static_cast<std::uint32_t>(line) : 0, function, layer);
}

VS_EXPORT int vramscope_check(const char* name) {
  record::mark(record::MarkKind::check, 0, name, -1, nullptr);
  if (!record::active()) return 0;
  int answered = 0;
  for (const capture::Framework* framework : capture::frameworks()) answered += framework->record_counters();
  return answered;
}

VS_EXPORT int vramscope_pools(struct vramscope_pool_info* out, int capacity) {
  const std::uint32_t count = record::pool_count();
  for (std::uint32_t i = 0; i < count && static_cast<int>(i) < capacity; ++i) capture::fill(out[i], static_cast<std::uint8_t>(i));
  return static_cast<int>(count);
}

VS_EXPORT int vramscope_pool_totals(int pool, struct vramscope_totals* out) {
  if (!record::active() || pool < 0 || static_cast<std::uint32_t>(pool) >= record::pool_count()) return -1;
  const spool::Pool& totals = *record::pool_totals(static_cast<std::uint8_t>(pool));
  out->current_bytes = totals.live_bytes.load(std::memory_order_relaxed);
  out->peak_bytes = totals.window_peak.load(std::memory_order_relaxed);
  out->limit_bytes = totals.limit_bytes.load(std::memory_order_relaxed);
  out->region_bytes = totals.region_bytes.load(std::memory_order_relaxed);
  if (out->largest_free != nullptr) out->largest_free_bytes = out->largest_free(out->allocator);
  return 0;
}

VS_EXPORT int vramscope_reset_peak(const char* pool_name) {
  int found = -1;
  for (std::uint32_t i = 0; pool_name != nullptr && i < record::pool_count(); ++i) {
    const auto index = static_cast<std::uint8_t>(i);
    spool::Pool& pool = *record::pool_totals(index);
    if (strcmp(record::pool_name(index), pool_name) != 0) continue;
    pool.window_peak.store(pool.live_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
    found = 0;
  }
  return found;
}

VS_EXPORT int vramscope_attach(const char* spool_folder, uint64_t spool_limit, const char* options, char* error,
                               size_t error_bytes) {
  const auto refuse = [&](const char* reason) {
    if (error != nullptr && error_bytes > 0) capture::copy_text(error, error_bytes, reason);
    return -1;
  };
  if (record::active()) return refuse("recording is already on in this process");
  if (spool_folder == nullptr || strlen(spool_folder) >= sizeof record::g_options.spool_folder)
    return refuse("the spool folder's name is missing or too long");
  capture::copy_text(record::g_options.spool_folder, sizeof record::g_options.spool_folder, spool_folder);
  record::g_options.spool_limit = spool_limit;
  record::parse_options(options);
  record::turn_on();
  if (!record::active())
    return refuse("the spool could not be created; check that the folder is writable and the disk is not full");
  // Frameworks that are loaded later are not seen: the library comes too late to be found first.
  for (const capture::Framework* framework : capture::frameworks()) {
    if (capture::loaded_object(framework->library).dynamic == nullptr || framework->attach_late() != 0) continue;
    vramscope_detach();
    record::Text<256> reason;
    reason.add(framework->name).add(" is loaded, but its tables cannot be changed (a hardened system?); use 'vramscope run'");
    return refuse(reason.c_str());
  }
  capture::cuda::attach_late();  // as far as it goes: pointers on the heap stay
  return 0;
}

VS_EXPORT void vramscope_detach(void) {
  capture::restore();
  record::end_recording();
}
