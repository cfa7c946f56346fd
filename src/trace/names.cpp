#include "trace/names.h"

#include <algorithm>
#include <utility>

#include "trace/block.h"

namespace vramscope::trace {
namespace {

constexpr std::size_t kMaxFrames = 4096;  // of one stack; the outer ones are left out

}  // namespace

Names::Names(std::optional<AnonymousKey> anonymize) {
  if (anonymize) anonymizer_.emplace(*anonymize);
}

StringId Names::string(std::string_view text) {
  if (text.empty()) return {};
  text = text.substr(0, kMaxStringBytes);
  if (!anonymizer_) return static_cast<StringId>(strings_(text));
  return remember(static_cast<StringId>(strings_(std::string_view(anonymizer_->hide(text)))), text);
}

PoolId Names::pool(Pool pool) {
  pool.name = reveal(pool.name);
  return static_cast<PoolId>(pools_(pool));
}

SiteId Names::site(Site site) {
  site.region = reveal(site.region);
  site.shape = reveal(site.shape);
  if (anonymizer_ && Anonymizer::readable_owner(clear_text(site.owner))) site.owner = reveal(site.owner);
  return static_cast<SiteId>(sites_(site));
}

FrameId Names::frame(Frame frame) {
  frame.build_id = reveal(frame.build_id);
  return static_cast<FrameId>(frames_(frame));
}

StackId Names::stack(std::uint64_t hash, std::span<const FrameId> frames, std::uint64_t cut) {
  if (frames.empty()) return {};
  const auto [found, inserted] = stacks_.try_emplace(hash, static_cast<StackId>(all_.stacks.size()));
  if (inserted) {
    const auto kept = frames.first(std::min(frames.size(), kMaxFrames));
    all_.stacks.push_back({hash, {kept.begin(), kept.end()}, cut + (frames.size() - kept.size())});
  }
  return found->second;
}

Setting Names::shown(Setting row) {
  if (!anonymizer_) return row;
  const std::string key = clear_text(row.key);
  if (Anonymizer::readable_setting(key, clear_text(row.value))) row.value = reveal(row.value);
  const std::string shown = anonymizer_->hide_key(key);
  row.key = remember(static_cast<StringId>(strings_(std::string_view(shown))), shown);
  return row;
}

Mark Names::shown(Mark row) {
  if (anonymizer_ && Anonymizer::readable_mark(clear_text(row.name))) row.name = reveal(row.name);
  if (anonymizer_ && Anonymizer::readable_mark(clear_text(row.detail))) row.detail = reveal(row.detail);
  return row;
}

// Types of containers, shapes, dtypes and devices give nothing away.
Report Names::shown(Report report) {
  if (!anonymizer_) return report;
  if (auto* held = std::get_if<HeldTensors>(&report)) held->container = reveal(held->container);
  if (auto* dataset = std::get_if<DatasetOnDevice>(&report)) dataset->device = reveal(dataset->device);
  if (auto* constant = std::get_if<BakedConstant>(&report)) {
    constant->shape = reveal(constant->shape);
    constant->dtype = reveal(constant->dtype);
  }
  return report;
}

// The id of the text itself instead of its hash.
StringId Names::reveal(StringId id) {
  if (!anonymizer_ || id == StringId{}) return id;
  const std::string text = clear_text(id);
  return remember(static_cast<StringId>(strings_(std::string_view(text))), text);
}

StringId Names::remember(StringId id, std::string_view text) {
  if (std::to_underlying(id) >= clear_.size()) clear_.resize(std::to_underlying(id) + 1);
  clear_[std::to_underlying(id)] = text;
  return id;
}

}  // namespace vramscope::trace
