// Chrome trace JSON with the "[memory]" events of PyTorch's profiler (profile_memory=True).
#include <fmt/format.h>

#include <map>

#include "importers/counted_events.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "support/json_reader.h"

namespace vramscope::importers::chrome {

extern const Importer kImporter;

namespace {

constexpr std::string_view kEvents = "\"traceEvents\"", kMemory = "[memory]", kStep = "ProfilerStep#",
                           kBase = "\"baseTimeNanoseconds\"";

// Cuts the objects out of an array without reading what is in them: a trace has millions, of which few are about memory.
class Objects {
 public:
  explicit Objects(std::string_view array) : left_(array) {}

  std::optional<std::string_view> next() {
    const std::size_t begin = left_.find_first_not_of(" \t\r\n,");
    if (begin == left_.npos || left_[begin] != '{') return {};
    std::size_t depth = 0;
    for (std::size_t at = begin; at < left_.size(); ++at) {
      const char c = left_[at];
      if (c == '"') {
        at = end_of_text(at);
      } else if (c == '{') {
        ++depth;
      } else if (c == '}' && --depth == 0) {
        const std::string_view object = left_.substr(begin, at + 1 - begin);
        left_.remove_prefix(at + 1);
        return object;
      }
    }
    cut_ = true;
    return {};
  }
  bool cut_off() const { return cut_; }
  std::string_view rest() const { return left_; }  // what follows the objects

 private:
  std::size_t end_of_text(std::size_t quote) const {
    for (std::size_t at = quote + 1; at < left_.size(); ++at) {
      if (left_[at] == '\\')
        ++at;
      else if (left_[at] == '"')
        return at;
    }
    return left_.size();
  }

  std::string_view left_;
  bool cut_ = false;
};

std::string_view events_in(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == bytes.npos) return {};
  const std::size_t name = bytes[first] == '{' ? bytes.find(kEvents) : first;
  const std::size_t bracket = name == bytes.npos ? name : bytes.find('[', name);
  return bracket == bytes.npos ? std::string_view() : bytes.substr(bracket + 1);
}

// When time 0 of the events was, in nanoseconds since 1970: PyTorch 2.2 and newer writes it beside the events. 0: not in
// `around`.
std::uint64_t base_ns(std::string_view around) {
  const std::size_t name = around.find(kBase);
  const std::size_t digit = name == around.npos ? name : around.find_first_not_of(" \t\r\n:", name + kBase.size());
  return digit == around.npos ? 0 : number_in(around.substr(digit)).value_or(0);
}

double number_of(const support::JsonValue& object, std::string_view name) {
  const support::JsonValue* member = object.member(name);
  return member != nullptr ? member->number().value_or(0) : 0;
}

// Integers of more than 53 bits must not pass through a double.
std::uint64_t address_of(const support::JsonValue& args) {
  const support::JsonValue* member = args.member("Addr");
  return member != nullptr ? member->count().value_or(whole(number_of(args, "Addr"))) : 0;
}

class Reading {
 public:
  explicit Reading(Profile& into) : into_(into) {}

  void object(std::string_view text) {
    const bool memory = text.find(kMemory) != text.npos;
    if (!memory && text.find(kStep) == text.npos) return;
    const auto event = support::read_json(text, {.depth = 16, .values = 10'000});
    if (!event || event->member("name") == nullptr) return;
    const std::string_view name = event->member("name")->text().value_or("");
    const support::JsonValue* args = event->member("args");
    const double time_us = number_of(*event, "ts");
    if (name == kMemory && args != nullptr) return add(time_us, *args);
    if (!name.starts_with(kStep) || number_of(*event, "dur") <= 0) return;
    if (const auto number = number_in(name.substr(kStep.size())))
      steps_.emplace(*number, std::pair(time_us, time_us + number_of(*event, "dur")));
  }

  Status finish() {
    if (events_.empty())
      return fail("a Chrome trace without memory events; record it with torch.profiler.profile(profile_memory=True)");
    bool earlier = false;
    for (auto& [device, events] : events_) {
      const std::string name = device < 0 ? "PyTorch CPU" : fmt::format("PyTorch GPU {}", device);
      const auto memory = device < 0 ? trace::Memory::host : trace::Memory::device;
      earlier |= add_counted(into_, into_.pool({name, device, memory, trace::Framework::pytorch}), std::move(events));
    }
    for (const auto& [number, time] : steps_) {
      into_.step(whole(time.first), static_cast<std::int64_t>(number), true);
      into_.step(whole(time.second), static_cast<std::int64_t>(number), false);
    }
    into_.lacks("requested sizes, layers, ops, dtypes, shapes and stacks");
    if (steps_.empty()) into_.lacks("steps");
    if (earlier) into_.lacks_beginning();
    return {};
  }

 private:
  void add(double time_us, const support::JsonValue& args) {
    constexpr double kMost = 1e18;
    const double bytes = number_of(args, "Bytes"), total = number_of(args, "Total Allocated");
    const double device = number_of(args, "Device Type") == 0 ? -1 : number_of(args, "Device Id");
    if (bytes == 0 || bytes > kMost || bytes < -kMost || device < -1 || device > 1023) return;
    CountedEvent event{.time_us = time_us, .address = address_of(args), .is_free = bytes < 0};
    event.granted = event.requested = static_cast<std::uint64_t>(bytes < 0 ? -bytes : bytes);
    event.total = total > 0 && total < kMost ? static_cast<std::uint64_t>(total) : 0;
    events_[static_cast<std::int64_t>(device)].push_back(event);
  }

  Profile& into_;
  std::map<std::int64_t, std::vector<CountedEvent>> events_;  // by device
  std::map<std::uint64_t, std::pair<double, double>> steps_;
};

bool recognizes(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == bytes.npos) return false;
  return bytes[first] == '{' ? bytes.find(kEvents) != bytes.npos : bytes[first] == '[' && bytes.find("\"ph\"") != bytes.npos;
}

Status read(std::string_view bytes, Profile& into) {
  const std::string_view events = events_in(bytes);
  Objects objects(events);
  Reading reading(into);
  while (const auto object = objects.next()) reading.object(*object);
  if (objects.cut_off()) return fail("damaged Chrome trace: it is cut off");
  const std::uint64_t before = base_ns(bytes.substr(0, bytes.size() - events.size()));
  into.starts((before != 0 ? before : base_ns(objects.rest())) / 1000);
  return reading.finish();
}

}  // namespace

const Importer kImporter{
    .name = "chrome", .title = "a Chrome trace from PyTorch's profiler", .recognizes = recognizes, .read = read};

}  // namespace vramscope::importers::chrome
