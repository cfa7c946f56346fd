#include "whatif/replay/torch_settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vramscope::whatif {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parts between commas; those in brackets belong together.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (const auto part = trimmed(text.substr(from, i - from)); !part.empty()) out.push_back(part);
    from = i + 1;
  }
  return out;
}

struct Entry {
  std::string_view key, value;
};

std::optional<Entry> entry_in(std::string_view part) {
  const std::size_t colon = part.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return Entry{trimmed(part.substr(0, colon)), trimmed(part.substr(colon + 1))};
}

std::unexpected<Error> invalid(std::string_view key, std::string_view value, std::string_view expected) {
  return fail("invalid value \"" + std::string(value) + "\" of " + std::string(key) + ": expected " + std::string(expected));
}

using Divisions = std::array<std::uint32_t, 16>;

bool is_division(std::uint32_t value) { return value == 0 || std::has_single_bit(value); }

// "4", or "[64:8,256:4,>:2]": sizes in MiB, the first also for everything below, ">" for everything after the last.
Result<Divisions> divisions_in(std::string_view key, std::string_view value) {
  Divisions out{};
  if (!value.starts_with('[')) {
    const auto all = number_in<std::uint32_t>(value);
    if (!all || !is_division(*all)) return invalid(key, value, "a power of two");
    out.fill(*all);
    return out;
  }
  if (!value.ends_with(']')) return invalid(key, value, "a list such as [64:8,256:4,>:2]");
  std::size_t filled = 0;
  for (const std::string_view part : parts_of(value.substr(1, value.size() - 2))) {
    const auto entry = entry_in(part);
    const auto divisions = entry ? number_in<std::uint32_t>(entry->value) : std::nullopt;
    if (!divisions || !is_division(*divisions)) return invalid(key, value, "a list such as [64:8,256:4,>:2]");
    if (entry->key == ">") {
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(std::min(filled, out.size())), out.end(), *divisions);
      continue;
    }
    const auto from = number_in<std::uint64_t>(entry->key);
    if (!from || !std::has_single_bit(*from)) return invalid(key, value, "sizes that are powers of two");
    const auto bucket = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(*from)), out.size() - 1);
    if (filled == 0) std::fill(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bucket), *divisions);
    out[bucket] = *divisions;
    filled = bucket + 1;
  }
  return out;
}

Status set_fraction(double& target, const Entry& entry) {
  const auto value = number_in<double>(entry.value);
  if (!value || *value < 0 || *value > 1) return invalid(entry.key, entry.value, "a number from 0 to 1");
  target = *value;
  return {};
}

Status set_threshold(double& target, const Entry& entry) {
  const auto value = number_in<double>(entry.value);
  if (!value || *value <= 0 || *value >= 1) return invalid(entry.key, entry.value, "a number between 0 and 1");
  target = *value;
  return {};
}

Status set_mebibytes(Bytes& target, const Entry& entry, Bytes least) {
  const auto value = number_in<std::uint64_t>(entry.value);
  if (!value || *value < least || *value >= Bytes{1} << 40)
    return invalid(entry.key, entry.value, "a number of MiB, at least " + std::to_string(least));
  target = *value * kMiB;
  return {};
}

Status set_flag(bool& target, const Entry& entry) {
  if (entry.value != "True" && entry.value != "False" && entry.value != "true" && entry.value != "false")
    return invalid(entry.key, entry.value, "True or False");
  target = entry.value == "True" || entry.value == "true";
  return {};
}

// Keys that do not change what is reserved.
constexpr std::string_view kOthers[] = {
    "release_lock_on_cudamalloc",     "release_lock_on_hipmalloc",   "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",   "pinned_num_register_threads", "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb", "pinned_free_catch_all",       "graph_capture_record_stream_reuse",
    "throw_on_cudamalloc_oom",        "expandable_segments_reserve", "expandable_segments_reserve_by_class",
    "expandable_segments_handle_type"};

Status set_backend(TorchSettings& settings, const Entry& entry) {
  if (entry.value != "native" && entry.value != "cudaMallocAsync")
    return invalid(entry.key, entry.value, "native or cudaMallocAsync");
  settings.stream_ordered = entry.value == "cudaMallocAsync";
  return {};
}

Status set(TorchSettings& settings, bool& has_slack, const Entry& entry, TorchSettings::UnknownKeys unknown) {
  if (entry.key == "expandable_segments") return set_flag(settings.expandable, entry);
  if (entry.key == "max_split_size_mb") return set_mebibytes(settings.max_split, entry, 20);
  if (entry.key == "large_segment_size_mb") return set_mebibytes(settings.large_segment, entry, 11);
  if (entry.key == "garbage_collection_threshold") return set_threshold(settings.collection_threshold, entry);
  if (entry.key == "per_process_memory_fraction") return set_fraction(settings.memory_fraction, entry);
  if (entry.key == "max_non_split_rounding_mb") {
    has_slack = true;
    return set_mebibytes(settings.oversize_slack, entry, 20);
  }
  if (entry.key == "backend") return set_backend(settings, entry);
  if (entry.key != "roundup_power2_divisions") {
    if (unknown == TorchSettings::UnknownKeys::ignored || std::ranges::find(kOthers, entry.key) != std::end(kOthers)) return {};
    return fail("unknown allocator setting \"" + std::string(entry.key) + "\"");
  }
  const auto divisions = divisions_in(entry.key, entry.value);
  if (!divisions) return std::unexpected(divisions.error());
  settings.divisions = *divisions;
  return {};
}

}  // namespace

Result<TorchSettings> TorchSettings::parse(std::string_view text, int version, UnknownKeys unknown) {
  TorchSettings out;
  out.version = version;
  bool has_slack = false;
  for (const std::string_view part : parts_of(text)) {
    const auto entry = entry_in(part);
    if (!entry) return fail("invalid allocator setting \"" + std::string(part) + "\": expected KEY:VALUE");
    if (const Status done = set(out, has_slack, *entry, unknown); !done) return std::unexpected(done.error());
  }
  if (!has_slack) out.oversize_slack = out.large_segment;
  return out;
}

int TorchSettings::version_of(std::string_view text) {
  constexpr int kDefault = 211;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return kDefault;
  const std::size_t end = std::min(text.find_first_not_of("0123456789", dot + 1), text.size());
  const auto major = number_in<int>(text.substr(0, dot)), minor = number_in<int>(text.substr(dot + 1, end - dot - 1));
  return major && minor && *major < 100 && *minor < 100 ? *major * 100 + *minor : kDefault;
}

Ties TorchSettings::ties() const {
  constexpr std::pair<int, Ties> kSince[] = {{213, Ties::segment}, {212, Ties::block}, {0, Ties::address}};
  return std::ranges::find_if(kSince, [&](const auto& row) { return version >= row.first; })->second;
}

Bytes TorchSettings::rounded(Bytes bytes) const {
  if (bytes < kTorchQuantum) return kTorchQuantum;
  const int bucket = std::clamp(static_cast<int>(std::bit_width(bytes)) - 1 - 20, 0, 15);
  const Bytes parts = divisions[static_cast<std::size_t>(bucket)];
  if (parts > 1 && bytes > kTorchQuantum * parts) {
    if (std::has_single_bit(bytes)) return bytes;
    const Bytes step = std::bit_floor(bytes) / parts;
    return step == 0 ? std::bit_ceil(bytes) : (bytes + step - 1) / step * step;
  }
  return (bytes + kTorchQuantum - 1) / kTorchQuantum * kTorchQuantum;
}

Bytes TorchSettings::segment_for(Bytes rounded) const {
  if (rounded <= kTorchSmall) return kTorchSmallSegment;
  if (rounded < kTorchMedium) return large_segment;
  return (rounded + kTorchLargeRounding - 1) / kTorchLargeRounding * kTorchLargeRounding;
}

}  // namespace vramscope::whatif
