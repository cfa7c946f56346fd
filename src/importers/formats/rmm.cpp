// The CSV log of RAPIDS' memory manager (rmm.enable_logging, or RMM_LOG_FILE).
#include <array>

#include "importers/importer.h"
#include "importers/lines.h"

namespace vramscope::importers::rmm {

extern const Importer kImporter;

namespace {

constexpr std::string_view kHead = "Thread,Time,Action,Pointer,Size,Stream";
constexpr std::uint64_t kSecond = 1'000'000, kDay = 24 * 3600 * kSecond;

// HH:MM:SS.ffffff; version 0.15 wrote a colon before the fraction.
std::optional<std::uint64_t> time_in(std::string_view text) {
  if (text.size() < 15) return {};
  const auto hours = number_in(text.substr(0, 2)), minutes = number_in(text.substr(3, 2)), seconds = number_in(text.substr(6, 2));
  const auto fraction = number_in(text.substr(9, 6));
  if (!hours || !minutes || !seconds || !fraction) return {};
  return ((*hours * 60 + *minutes) * 60 + *seconds) * kSecond + *fraction;
}

std::uint64_t hex(std::string_view text) { return number_in(text.starts_with("0x") ? text.substr(2) : text, 16).value_or(0); }

Status read(std::string_view bytes, Profile& into) {
  const std::uint32_t pool = into.pool({"RMM", 0, trace::Memory::device, trace::Framework::none});
  std::uint64_t day = 0, last = 0, wrong = 0;
  bool head = true;
  each_line(bytes, [&](std::string_view line) {
    if (std::exchange(head, false) || line.empty()) return;
    std::array<std::string_view, 6> field;
    std::size_t count = 0;
    for (std::string_view rest = line; count < field.size(); ++count) {
      const std::size_t comma = count + 1 < field.size() ? rest.find(',') : rest.npos;
      field[count] = rest.substr(0, comma);
      if (comma == rest.npos) break;
      rest.remove_prefix(comma + 1);
    }
    const auto time = time_in(field[1]);
    const auto size = number_in(field[4]);
    if (count + 1 < field.size() || !time || !size) {
      ++wrong;
      return;
    }
    // The log has no date.
    if (*time + kDay / 2 < last) day += kDay;
    last = *time;
    const Details details{.stream = hex(field[5])};
    if (field[2] == "allocate")
      into.alloc(day + *time, pool, hex(field[3]), *size, *size, details);
    else if (field[2] == "free")
      into.free(day + *time, pool, hex(field[3]));
    else if (field[2] == "allocate failure")
      into.oom(day + *time, pool, *size, 0, 0, details);
  });
  into.lost(wrong);
  into.lacks("the device, granted sizes, steps, layers, ops, dtypes, shapes and stacks");
  return {};
}

}  // namespace

const Importer kImporter{.name = "rmm",
                         .title = "an RMM log (CSV)",
                         .recognizes = [](std::string_view bytes) { return bytes.starts_with(kHead); },
                         .read = read};

}  // namespace vramscope::importers::rmm
