// Records of rare events: regions, marks, tags, settings, reports, contexts, counters, sources of ops.
#include <string.h>

#include "record/recorder.h"
#include "record/write.h"

namespace vramscope::record {

using spool::RecordHead;
using spool::RecordKind;

void region(std::uint8_t pool, std::uint64_t address, std::uint64_t bytes, bool returned) {
  recorded([&](Control& control) {
    if (spool::Pool* totals = pool_totals(pool)) {
      const std::uint64_t change = returned ? std::uint64_t{0} - bytes : bytes;
      raise_to(totals->region_peak, totals->region_bytes.fetch_add(change, std::memory_order_relaxed) + change);
    }
    auto* record = room<spool::RegionRecord>(control, RecordKind::region);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->head.flags = returned ? std::uint8_t{spool::kFlagReturned} : std::uint8_t{0};
    record->head.pool = pool;
    record->address = address;
    record->bytes = bytes;
    commit(record->head);
  });
}

void mark(MarkKind kind, std::uint8_t edge_flags, const char* name, std::int64_t number, const char* detail) {
  recorded([&](Control& control) {
    const std::uint32_t name_id = intern_inside(control, name);
    const std::uint32_t detail_id = intern_inside(control, detail);
    auto* record = room<spool::MarkRecord>(control, RecordKind::mark);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->head.flags = edge_flags;
    record->head.small = static_cast<std::uint16_t>(kind);
    record->number = number;
    record->name = name_id;
    record->detail = detail_id;
    commit(record->head);
  });
}

namespace {

void write_tag(Control& control, std::uint64_t address, std::uint64_t bytes, Category category, std::uint32_t name,
               std::uint32_t layer) {
  auto* record = room<spool::TagRecord>(control, RecordKind::tag);
  if (record == nullptr) return;
  record->head.seq = seq_or_draw(control, 0);
  record->head.small = static_cast<std::uint16_t>(category);
  record->address = address;
  record->bytes = bytes;
  record->name = name;
  record->layer = layer;
  commit(record->head);
}

}  // namespace

void tag(std::uint64_t address, std::uint64_t bytes, Category category, const char* name, const char* layer) {
  recorded([&](Control& control) {
    const std::uint32_t name_id = intern_inside(control, name);
    write_tag(control, address, bytes, category, name_id, intern_inside(control, layer));
  });
}

void tag(std::uint64_t address, std::uint64_t bytes, Category category, std::uint32_t name, std::uint32_t layer) {
  recorded([&](Control& control) { write_tag(control, address, bytes, category, name, layer); });
}

void setting(const char* key, const char* value) {
  recorded([&](Control& control) {
    const std::uint32_t key_id = intern_inside(control, key);
    const std::uint32_t value_id = intern_inside(control, value);
    auto* record = room<spool::SettingRecord>(control, RecordKind::setting);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->key = key_id;
    record->value = value_id;
    commit(record->head);
  });
}

void report(std::uint16_t kind, const char* const* texts, const std::uint64_t* numbers) {
  const base::ReportShape shape = base::report_shape(kind);
  if (!shape.reported()) return;
  recorded([&](Control& control) {
    std::uint32_t ids[base::kReportTexts] = {};
    for (std::size_t i = 0; i < shape.texts; ++i) ids[i] = intern_inside(control, texts[i]);
    auto* record = room<spool::ReportRecord>(control, RecordKind::report);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->head.small = kind;
    for (std::size_t i = 0; i < base::kReportNumbers; ++i) record->number[i] = i < shape.numbers ? numbers[i] : 0;
    memcpy(record->text, ids, sizeof ids);
    commit(record->head);
  });
}

void context(std::int64_t device, std::uint64_t free_bytes, std::uint64_t total_bytes, std::uint64_t handle) {
  recorded([&](Control& control) {
    auto* record = room<spool::ContextRecord>(control, RecordKind::context);
    if (record == nullptr) return;
    record->head.seq = seq_or_draw(control, 0);
    record->device = static_cast<std::uint64_t>(device);
    record->free_bytes = free_bytes;
    record->total_bytes = total_bytes;
    record->context = handle;
    commit(record->head);
  });
}

void stats(std::uint8_t pool, const spool::StatsRecord& counters) {
  recorded([&](Control& control) {
    auto* record = room<spool::StatsRecord>(control, RecordKind::stats);
    if (record == nullptr) return;
    const RecordHead head = record->head;
    *record = counters;
    record->head = head;
    record->head.seq = seq_or_draw(control, 0);
    record->head.pool = pool;
    commit(record->head);
  });
}

void op_source(const char* op, const char* file, std::uint32_t line, const char* function, const char* layer) {
  recorded([&](Control& control) {
    const std::uint32_t ids[] = {intern_inside(control, op), intern_inside(control, file), intern_inside(control, function),
                                 intern_inside(control, layer)};
    auto* record = room<spool::OpSourceRecord>(control, RecordKind::op_source);
    if (record == nullptr) return;
    record->op = ids[0];
    record->file = ids[1];
    record->function = ids[2];
    record->line = line;
    record->layer = ids[3];
    commit(record->head);
  });
}

}  // namespace vramscope::record
