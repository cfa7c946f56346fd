#include "analyze/labels.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/attribute/categories.h"
#include "analyze/verdict/ending.h"
#include "support/units.h"

namespace vramscope::analyze {

using support::format_size;

namespace {

// "XLA temporaries" of "xla_temporaries".
std::string category_of_filter(std::string value) {
  std::ranges::replace(value, '_', ' ');
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto known =
      std::ranges::find_if(kCategoryNames, [&](std::string_view name) { return std::ranges::equal(name, value, {}, lower); });
  return known == std::end(kCategoryNames) ? value : std::string(*known);
}

}  // namespace

std::string label_of_count(std::uint64_t count) { return count == 0 ? "none" : support::format_count(count); }

std::string label_of(const Leaks& leaks) {
  if (leaks.verdict == "growing") return std::string(kGrows);
  return leaks.verdict == "not growing" ? "none" : "–";
}

std::string trouble_of(const Engine& engine, const Leaks& leaks) {
  if (engine.overview().ooms > 0) return "out of memory";
  if (leaks.verdict == "growing") return std::string(kGrows);
  constexpr std::string_view kVerb = "was ";
  const std::string words = ending_words(ending_of(engine.state()));
  return words.starts_with(kVerb) ? words.substr(kVerb.size()) : words;
}

std::string label_of(const Step& step) {
  const bool trains = step.kind.empty() || step.kind == "train";
  return fmt::format("{} {}", trains ? "Step" : step.kind, step.number);
}

std::string label_of(const Finding& finding) {
  if (!finding.where.empty() && finding.where.find(' ') == std::string::npos) {
    std::string what = finding.where.substr(finding.where.find(':') + 1);
    return finding.where.starts_with("category:") ? category_of_filter(std::move(what)) : what;
  }
  return finding.at.starts_with("moment:") || finding.at.starts_with(finding.view) ? "" : finding.at;
}

std::string label_of(const Sample& sample) {
  if (sample.device < 0) return format_size(sample.used);
  return fmt::format("{} of {}", format_size(sample.used), format_size(sample.total));
}

std::string label_of_device(const Place& place) {
  constexpr std::string_view kLevel = " driver";
  return place.name.ends_with(kLevel) ? place.name.substr(0, place.name.size() - kLevel.size()) : place.name;
}

std::string label_of_pools(const Place& place) { return fmt::format("{} held at the end", format_size(place.regions_end)); }

std::string_view label_without_samples(std::int64_t device) {
  return device < 0 ? "no GPU in this run" : "not recorded: no NVML";
}

}  // namespace vramscope::analyze
