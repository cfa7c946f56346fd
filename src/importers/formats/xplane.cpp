// What the profilers of TensorFlow and JAX write: *.xplane.pb with an event for each allocation and free of a BFC allocator.
#include <map>
#include <unordered_map>

#include "importers/allocator_name.h"
#include "importers/counted_events.h"
#include "importers/importer.h"
#include "importers/wire_reader.h"
#include "support/secret_hash.h"

namespace vramscope::importers::xplane {

extern const Importer kImporter;

namespace {

// Fields of XSpace, XPlane, XLine, XEvent and XStat.
constexpr std::uint32_t kPlane = 1, kPlaneName = 2, kLine = 3, kEventNames = 4, kStatNames = 5;
constexpr std::uint32_t kLineTime = 3, kLineEvent = 4;
constexpr std::uint32_t kEventName = 1, kEventOffset = 2, kEventStat = 4;
constexpr std::uint32_t kStatName = 1, kStatText = 5, kStatBytes = 6, kStatRef = 7;

constexpr std::size_t kLongestAllocator = 256;

using Names = std::unordered_map<std::uint64_t, std::string_view, support::SecretHash>;

// An entry of a map from id to {id, name, ...}.
void add_name(std::string_view entry, Names& names) {
  std::uint64_t id = 0;
  std::string_view name;
  each_field(entry, [&](const WireField& field) {
    if (field.number == 1 && !field.is_text) id = field.value;
    if (field.number == 2 && field.is_text)
      each_field(field.text, [&](const WireField& inner) {
        if (inner.number == 2 && inner.is_text) name = inner.text;
      });
  });
  names[id] = name;
}

struct Stats {
  std::string_view allocator, op, region, shape;
  std::uint64_t address = 0, requested = 0, granted = 0, total = 0, dtype = 0;
};

class Plane {
 public:
  Plane(std::string_view bytes, std::map<std::string_view, std::vector<CountedEvent>>& events, Profile& profile)
      : events_(events), profile_(profile) {
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kEventNames && field.is_text) add_name(field.text, event_names_);
      if (field.number == kStatNames && field.is_text) add_name(field.text, stat_names_);
    });
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kLine && field.is_text) line(field.text);
    });
  }

 private:
  void line(std::string_view bytes) {
    std::uint64_t began_ns = 0;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kLineTime && !field.is_text) began_ns = field.value;
    });
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kLineEvent && field.is_text) event(field.text, began_ns);
    });
  }

  void event(std::string_view bytes, std::uint64_t began_ns) {
    std::string_view name;
    std::uint64_t offset_ps = 0;
    Stats stats;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kEventName && !field.is_text) name = name_of(event_names_, field.value);
      if (field.number == kEventOffset && !field.is_text) offset_ps = field.value;
    });
    const bool is_free = name == "MemoryDeallocation";
    if (!is_free && name != "MemoryAllocation") return;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kEventStat && field.is_text) stat(field.text, stats);
    });
    if (stats.allocator.empty()) return;
    // Whole microseconds apart from their parts: today's nanoseconds do not fit into a double.
    const std::uint64_t whole_us = began_ns / 1000;
    CountedEvent out{.time_us = static_cast<double>(whole_us) + static_cast<double>(began_ns % 1000) / 1e3 +
                                static_cast<double>(offset_ps) / 1e6,
                     .address = stats.address,
                     .requested = stats.requested,
                     .granted = stats.granted,
                     .total = stats.total,
                     .is_free = is_free};
    // The op of a free is whatever ran on the thread.
    if (!is_free)
      out.details = {.op = text(stats.op), .region = text(stats.region), .shape = text(stats.shape), .dtype = stats.dtype};
    events_[stats.allocator.substr(0, kLongestAllocator)].push_back(out);
  }

  void stat(std::string_view bytes, Stats& stats) {
    std::string_view name, value;
    std::uint64_t number = 0;
    each_field(bytes, [&](const WireField& field) {
      if (field.number == kStatName && !field.is_text)
        name = name_of(stat_names_, field.value);
      else if (field.number == kStatText || field.number == kStatBytes)
        value = field.text;
      else if (field.number == kStatRef)
        value = name_of(stat_names_, field.value);
      else
        number = field.value;
    });
    const std::pair<std::string_view, std::string_view Stats::*> texts[] = {
        {"allocator_name", &Stats::allocator}, {"tf_op", &Stats::op}, {"region_type", &Stats::region}, {"shape", &Stats::shape}};
    for (const auto& [key, member] : texts)
      if (name == key) stats.*member = value;
    const std::pair<std::string_view, std::uint64_t Stats::*> numbers[] = {{"addr", &Stats::address},
                                                                           {"requested_bytes", &Stats::requested},
                                                                           {"allocation_bytes", &Stats::granted},
                                                                           {"bytes_allocated", &Stats::total},
                                                                           {"data_type", &Stats::dtype}};
    for (const auto& [key, member] : numbers)
      if (name == key) stats.*member = number;
  }

  static std::string_view name_of(const Names& names, std::uint64_t id) {
    const auto found = names.find(id);
    return found == names.end() ? std::string_view() : found->second;
  }
  // Versions that hold names as C strings print a missing one as "(null)".
  Text text(std::string_view value) { return profile_.text_in_file(value == "(null)" ? std::string_view() : value); }

  std::map<std::string_view, std::vector<CountedEvent>>& events_;
  Profile& profile_;
  Names event_names_, stat_names_;
};

bool recognizes(std::string_view bytes) {
  WireReader reader(bytes);
  const auto first = reader.next();
  if (!first || first->number != kPlane || !first->is_text) return false;
  bool named = false;
  const bool whole = each_field(first->text, [&](const WireField& field) {
    named |= field.number == kPlaneName && field.is_text && (field.text.starts_with('/') || field.text.starts_with("Task"));
  });
  return whole && named;
}

Status read(std::string_view bytes, Profile& into) {
  std::map<std::string_view, std::vector<CountedEvent>> events;  // by allocator
  const bool whole = each_field(bytes, [&](const WireField& field) {
    if (field.number == kPlane && field.is_text) Plane(field.text, events, into);
  });
  if (!whole) return fail("damaged XPlane file: it is cut off");
  if (events.empty())
    return fail(
        "an XPlane file without memory events; TensorFlow and JAX write them for BFC allocators, with host_tracer_level 2 or "
        "more "
        "(on the CPU, TensorFlow has one with TF_CPU_ALLOCATOR_USE_BFC=1, JAX has none)");
  bool earlier = false;
  for (auto& [allocator, list] : events) earlier |= add_counted(into, into.pool(tensorflow_pool(allocator)), std::move(list));
  into.lacks("steps, source lines and stacks");
  into.lacks("regions of the pool");
  if (earlier) into.lacks_beginning();
  return {};
}

}  // namespace

const Importer kImporter{
    .name = "xplane", .title = "an XPlane profile of TensorFlow or JAX", .recognizes = recognizes, .read = read};

}  // namespace vramscope::importers::xplane
