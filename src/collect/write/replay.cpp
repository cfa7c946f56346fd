#include "collect/write/replay.h"

#include "trace/report_texts.h"

namespace vramscope::collect {

namespace {

// Ids of the old trace in the new one.
class Translator {
 public:
  Translator(const trace::Dictionaries& from, ProcessTrace& into) : from_(from), writer_(into.writer()) {
    for (const std::string& text : from.strings) strings_.push_back(writer_.string(text));
    for (const trace::Pool& pool : from.pools) {
      trace::Pool row = pool;
      row.name = string(pool.name);
      pools_.push_back(writer_.pool(row));
      live_.push_back(into.live_pool(text(pool.name), pool.device));
    }
    for (trace::Frame frame : from.frames) {
      frame.function = string(frame.function);
      frame.file = string(frame.file);
      frame.build_id = string(frame.build_id);
      frames_.push_back(writer_.frame(frame));
    }
    for (const trace::Stack& stack : from.stacks) {
      std::vector<trace::FrameId> frames;
      for (trace::FrameId frame : stack.frames) frames.push_back(translated(frames_, frame));
      stacks_.push_back(frames.empty() ? trace::StackId{} : writer_.stack(stack.hash, frames, stack.cut));
    }
    for (trace::Site site : from.sites) {
      site.pool = translated(pools_, site.pool);
      site.op = string(site.op);
      site.region = string(site.region);
      site.shape = string(site.shape);
      site.stack = translated(stacks_, site.stack);
      site.owner = string(site.owner);
      sites_.push_back(writer_.site(site));
    }
    for (trace::Thread thread : from.threads) {
      thread.name = string(thread.name);
      threads_.push_back(writer_.thread(thread));
    }
    for (trace::OpSource source : from.op_sources) {
      source.op = string(source.op);
      source.file = string(source.file);
      source.function = string(source.function);
      source.layer = string(source.layer);
      writer_.op_source(source);
    }
    for (trace::SourceFile file : from.source_files) {
      file.file = string(file.file);
      writer_.source_file(file);
    }
    for (trace::SourceLine line : from.source_lines) {
      line.file = string(line.file);
      line.text = string(line.text);
      writer_.source_line(line);
    }
  }

  std::string_view text(trace::StringId id) const {
    const auto index = static_cast<std::size_t>(id);
    return index < from_.strings.size() ? std::string_view(from_.strings[index]) : std::string_view();
  }
  trace::StringId string(trace::StringId id) const { return translated(strings_, id); }
  trace::PoolId pool(trace::PoolId id) const { return translated(pools_, id); }
  trace::SiteId site(trace::SiteId id) const { return translated(sites_, id); }
  trace::ThreadId thread(trace::ThreadId id) const { return translated(threads_, id); }
  LivePool* live(trace::PoolId id) const { return translated(live_, id); }
  const trace::Site* old_site(trace::SiteId id) const {
    const auto index = static_cast<std::size_t>(id);
    return index < from_.sites.size() ? &from_.sites[index] : nullptr;
  }

 private:
  template <typename T, typename Id>
  static T translated(const std::vector<T>& table, Id id) {
    const auto index = static_cast<std::size_t>(id);
    return index < table.size() ? table[index] : T{};
  }

  const trace::Dictionaries& from_;
  trace::Writer& writer_;
  std::vector<trace::StringId> strings_;
  std::vector<trace::PoolId> pools_;
  std::vector<LivePool*> live_;
  std::vector<trace::FrameId> frames_;
  std::vector<trace::StackId> stacks_;
  std::vector<trace::SiteId> sites_;
  std::vector<trace::ThreadId> threads_;
};

class Replay {
 public:
  Replay(const trace::Dictionaries& dictionaries, ProcessTrace& into) : ids_(dictionaries, into), writer_(into.writer()) {}

  void chunk(const trace::Chunk& chunk) {
    std::array<std::size_t, 32> row{};
    const trace::Tables& tables = chunk.tables;
    for (std::size_t i = 0; i < chunk.kind.size(); ++i) {
      const auto kind = static_cast<std::size_t>(chunk.kind[i]);
      if (kind >= row.size()) continue;
      const trace::At at{chunk.seq[i], chunk.time_us[i], ids_.thread(chunk.thread[i])};
      event(at, chunk.kind[i], tables, row[kind]++);
      stored_.add(at.seq);
    }
  }

  SeqRanges stored() {
    stored_.sort();
    return std::move(stored_);
  }

 private:
  // Long because each kind of event has a case.
  void event(const trace::At& at, trace::EventKind kind, const trace::Tables& tables, std::size_t row) {
    switch (kind) {
      case trace::EventKind::alloc:
        alloc(at, tables.alloc.row(row));
        return;
      case trace::EventKind::free_:
        free(at, tables.free.row(row));
        return;
      case trace::EventKind::region: {
        auto region = tables.region.row(row);
        if (LivePool* live = ids_.live(region.pool)) live->region(region.address, region.bytes, region.returned);
        region.pool = ids_.pool(region.pool);
        return writer_.append(at, region);
      }
      case trace::EventKind::mark: {
        auto mark = tables.mark.row(row);
        mark.name = ids_.string(mark.name);
        mark.detail = ids_.string(mark.detail);
        return writer_.append(at, mark);
      }
      case trace::EventKind::tag: {
        auto tag = tables.tag.row(row);
        tag.name = ids_.string(tag.name);
        tag.layer = ids_.string(tag.layer);
        return writer_.append(at, tag);
      }
      case trace::EventKind::stats: {
        auto stats = tables.stats.row(row);
        stats.pool = ids_.pool(stats.pool);
        return writer_.append(at, stats);
      }
      case trace::EventKind::oom: {
        auto oom = tables.oom.row(row);
        oom.site = ids_.site(oom.site);
        return writer_.append(at, oom);
      }
      case trace::EventKind::device_sample:
        return writer_.append(at, tables.device_sample.row(row));
      case trace::EventKind::host_sample:
        return writer_.append(at, tables.host_sample.row(row));
      case trace::EventKind::setting: {
        const auto setting = tables.setting.row(row);
        return writer_.append(at, trace::Setting{ids_.string(setting.key), ids_.string(setting.value)});
      }
      case trace::EventKind::lost:
        return writer_.append(at, tables.lost.row(row));
      case trace::EventKind::context:
        return writer_.append(at, tables.context.row(row));
      case trace::EventKind::totals: {
        auto totals = tables.totals.row(row);
        totals.pool = ids_.pool(totals.pool);
        return writer_.append(at, totals);
      }
      case trace::EventKind::omitted:
        return;
      default:
        if (auto report = trace::report_at(tables, kind, row)) {
          trace::for_each_text(*report, [&](trace::StringId& id) { id = ids_.string(id); });
          writer_.append(at, *report);
        }
    }
  }

  void alloc(const trace::At& at, trace::Alloc row) {
    const trace::Site* site = ids_.old_site(row.site);
    const trace::PoolId pool = site != nullptr ? site->pool : trace::PoolId{};
    allocs_.push_back({pool, row.address});
    row.site = ids_.site(row.site);
    if (LivePool* live = ids_.live(pool)) {
      LiveBlock block;
      block.granted = row.granted;
      block.requested = site != nullptr ? site->requested : 0;
      block.site = static_cast<std::uint32_t>(row.site);
      live->alloc(row.address, block);
    }
    writer_.alloc(at, row);
  }

  void free(const trace::At& at, const trace::Free& row) {
    const Place place = row.alloc < allocs_.size() ? allocs_[row.alloc] : Place{row.pool, row.address};
    if (LivePool* live = ids_.live(place.pool)) live->free(place.address);
    writer_.free(at, ids_.pool(place.pool), place.address, row.stream);
  }

  struct Place {
    trace::PoolId pool{};
    std::uint64_t address = 0;
  };

  Translator ids_;
  trace::Writer& writer_;
  std::vector<Place> allocs_;
  SeqRanges stored_;
};

}  // namespace

SeqRanges replay(const trace::Reader& partial, ProcessTrace& into) {
  Replay replay(partial.dictionaries(), into);
  for (std::size_t i = 0; i < partial.chunks(); ++i)
    if (auto chunk = partial.chunk(i)) replay.chunk(*chunk);
  return replay.stored();
}

}  // namespace vramscope::collect
