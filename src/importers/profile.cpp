#include "importers/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/compress.h"
#include "trace/block.h"
#include "trace/source.h"
#include "trace/writer.h"

namespace vramscope::importers {

namespace {

template <typename... Parts>
std::string key_of(const Parts&... parts) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&parts), sizeof parts), ...);
  return out;
}

}  // namespace

Profile::Profile() {
  text("");
  stack({});
}

Text Profile::text(std::string_view value) {
  const auto [found, fresh] = text_ids_.try_emplace(std::string(value), static_cast<Text>(texts_.size()));
  if (fresh) texts_.emplace_back(value);
  return found->second;
}

Text Profile::text_in_file(std::string_view part) {
  const auto [found, fresh] = places_.try_emplace(key_of(part.data(), part.size()), Text{0});
  if (fresh) found.value() = text(part);
  return found->second;
}

std::uint32_t Profile::pool(const PoolInfo& info) {
  const std::pair key{text(info.name), info.device};
  if (const auto known = pool_ids_.find(key); known != pool_ids_.end()) return known->second;
  if (pools_.size() < trace::kMaxPools) {  // what a hostile file adds beyond is counted in the last one
    pool_ids_.emplace(key, static_cast<std::uint32_t>(pools_.size()));
    pools_.push_back({key.first, info.device, info.memory, info.framework});
  }
  return static_cast<std::uint32_t>(pools_.size() - 1);
}

std::uint32_t Profile::frame(const FrameInfo& frame) { return frames_.number(frame); }

Stack Profile::stack(std::span<const std::uint32_t> frames) {
  std::string key(reinterpret_cast<const char*>(frames.data()), frames.size_bytes());
  const auto [found, fresh] = stack_ids_.try_emplace(std::move(key), static_cast<Stack>(stacks_.size()));
  if (fresh) {
    stacks_.emplace_back(static_cast<std::uint32_t>(stack_frames_.size()), static_cast<std::uint32_t>(frames.size()));
    stack_frames_.insert(stack_frames_.end(), frames.begin(), frames.end());
  }
  return found->second;
}

std::uint32_t Profile::site(std::uint32_t pool, std::uint64_t requested, const Details& details) {
  return sites_.number({pool, requested, details});
}

void Profile::alloc(std::uint64_t time_us, std::uint32_t pool, std::uint64_t address, std::uint64_t requested,
                    std::uint64_t granted, const Details& details) {
  events_.push_back({time_us, address, granted, site(pool, requested, details), Kind::alloc});
}

void Profile::was_live(std::uint32_t pool, std::uint64_t address, std::uint64_t requested, std::uint64_t granted,
                       const Details& details) {
  before_.push_back({0, address, granted, site(pool, requested, details), Kind::alloc});
}

void Profile::free(std::uint64_t time_us, std::uint32_t pool, std::uint64_t address) {
  events_.push_back({time_us, address, 0, pool, Kind::free});
}

void Profile::region(std::uint64_t time_us, std::uint32_t pool, std::uint64_t address, std::uint64_t bytes, bool returned) {
  events_.push_back({time_us, address, bytes, pool, returned ? Kind::returned : Kind::region});
}

void Profile::had_region(std::uint32_t pool, std::uint64_t address, std::uint64_t bytes) {
  before_.push_back({0, address, bytes, pool, Kind::region});
}

void Profile::oom(std::uint64_t time_us, std::uint32_t pool, std::uint64_t requested, std::uint64_t live, std::uint64_t limit,
                  const Details& details) {
  events_.push_back({time_us, failures_.size(), 0, site(pool, requested, details), Kind::oom});
  failures_.push_back({live, limit});
}

void Profile::step(std::uint64_t time_us, std::int64_t number, bool begins) {
  events_.push_back({time_us, static_cast<std::uint64_t>(number), 0, 0, begins ? Kind::begin : Kind::end});
}

void Profile::counters(const trace::Stats& stats, std::uint32_t pool) { counters_.emplace_back(stats, pool); }

// One pass over the sorted events. Names get their ids when they are first used.
class Profile::Writing {
 public:
  Writing(const Profile& profile, trace::Writer& writer) : p_(profile), w_(writer) {
    strings_.resize(p_.texts_.size());
    for (const std::string& text : p_.texts_) text_hashes_.push_back(support::checksum(support::bytes_of(text)));
    for (const PoolRow& pool : p_.pools_)
      pools_.push_back(w_.pool({string(pool.name), pool.device, trace::Level::tensor, pool.memory, pool.framework}));
    for (const FrameInfo& frame : p_.frames_)
      frames_.push_back(w_.frame({string(frame.function), string(frame.file), frame.line, 0, {}}));
    stacks_.resize(p_.stacks_.size());
    sites_.resize(p_.sites_.size());
    has_site_.resize(p_.sites_.size());
  }

  void setting(std::string_view key, std::string_view value) {
    w_.append(at(0), trace::Setting{w_.string(key), w_.string(value)});
  }

  void event(const Event& event, std::uint64_t time_us) {
    switch (event.kind) {
      case Kind::alloc:
        w_.alloc(at(time_us), {site(event.site), event.address, event.bytes, 0});
        break;
      case Kind::free:
        w_.free(at(time_us), pools_[event.site], event.address, 0);
        break;
      case Kind::region:
      case Kind::returned:
        w_.append(at(time_us), trace::Region{pools_[event.site], event.address, event.bytes, event.kind == Kind::returned});
        break;
      case Kind::oom: {
        const Failure& failure = p_.failures_[event.address];
        w_.append(at(time_us), trace::Oom{site(event.site), 0, true, failure.live, 0, 0, failure.limit});
        break;
      }
      case Kind::begin:
      case Kind::end:
        w_.append(at(time_us), trace::Mark{trace::MarkKind::step,
                                           event.kind == Kind::begin ? trace::MarkEdge::begin : trace::MarkEdge::end,
                                           w_.string("train"),
                                           static_cast<std::int64_t>(event.address),
                                           {}});
        break;
    }
  }

  void end(std::uint64_t time_us) {
    for (const auto& [stats, pool] : p_.counters_) {
      trace::Stats row = stats;
      row.pool = pools_[pool];
      w_.append(at(time_us), row);
    }
    if (p_.lost_ > 0) w_.append(at(time_us), trace::Lost{trace::LossKind::overwritten, p_.lost_});
  }

 private:
  trace::At at(std::uint64_t time_us) { return {++seq_, time_us, {}}; }
  trace::StringId string(Text id) {
    if (strings_[id] == trace::StringId{}) strings_[id] = w_.string(p_.texts_[id]);
    return strings_[id];
  }

  trace::StackId stack(Stack id) {
    if (id == 0) return {};
    if (stacks_[id] == trace::StackId{}) {
      const auto [begin, count] = p_.stacks_[id];
      std::vector<trace::FrameId> frames;
      // The hash is of names, so that stacks of two files can be compared. Each name is looked at once: it may be long.
      std::vector<std::uint64_t> content;
      for (std::uint32_t i = begin; i < begin + count; ++i) {
        const FrameInfo& frame = p_.frames_[p_.stack_frames_[i]];
        frames.push_back(frames_[p_.stack_frames_[i]]);
        content.insert(content.end(), {text_hashes_[frame.function], text_hashes_[frame.file], frame.line});
      }
      stacks_[id] =
          w_.stack(support::checksum({reinterpret_cast<const std::uint8_t*>(content.data()), content.size() * 8}), frames);
    }
    return stacks_[id];
  }

  trace::SiteId site(std::uint32_t id) {
    if (!has_site_[id]) {
      const SiteInfo& info = p_.sites_[id];
      const Details& d = info.details;
      sites_[id] = w_.site({pools_[info.pool], info.requested, string(d.op), string(d.region), d.dtype, string(d.shape),
                            stack(d.stack), d.stream, string(d.owner), 0});
      has_site_[id] = true;
    }
    return sites_[id];
  }

  const Profile& p_;
  trace::Writer& w_;
  std::vector<trace::StringId> strings_;    // by text
  std::vector<std::uint64_t> text_hashes_;  // by text
  std::vector<trace::PoolId> pools_;
  std::vector<trace::FrameId> frames_;
  std::vector<trace::StackId> stacks_;
  std::vector<trace::SiteId> sites_;
  std::vector<bool> has_site_;
  std::uint64_t seq_ = 0;
};

Status Profile::write(const std::filesystem::path& trace, std::string_view format, std::string_view title) {
  // Most profiles are in order; sorting takes half of the events' memory again.
  if (!std::ranges::is_sorted(events_, {}, &Event::time_us)) std::ranges::stable_sort(events_, {}, &Event::time_us);
  const std::uint64_t first = events_.empty() ? 0 : events_.front().time_us;
  auto writer = trace::Writer::create(trace, {.start_realtime_us = std::max<std::uint64_t>(1, start_us_ + first)});
  if (!writer) return std::unexpected(writer.error());
  Writing writing(*this, *writer);
  writing.setting(trace::kSourceFormat, format);
  writing.setting(trace::kSourceTitle, title);
  if (!lacks_.empty()) writing.setting(trace::kSourceLacks, fmt::format("{}", fmt::join(lacks_, ", ")));
  for (const auto& [key, value] : settings_) writing.setting(key, value);
  for (const Event& event : before_) writing.event(event, 0);
  for (const Event& event : events_) writing.event(event, event.time_us - first);
  writing.end(events_.empty() ? 0 : events_.back().time_us - first);
  return writer->finish();
}

}  // namespace vramscope::importers
