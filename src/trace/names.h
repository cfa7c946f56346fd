// The dictionaries of a trace that is being written: equal content gets the same id, and --anonymize replaces names here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/secret_hash.h"
#include "trace/anonymize.h"
#include "trace/dictionary.h"
#include "trace/gen/schema.h"
#include "trace/intern.h"

namespace vramscope::trace {

class Names {
 public:
  explicit Names(std::optional<AnonymousKey> anonymize);
  Names(const Names&) = delete;  // the interners point to the entries
  Names& operator=(const Names&) = delete;

  StringId string(std::string_view text);
  PoolId pool(Pool pool);
  SiteId site(Site site);
  FrameId frame(Frame frame);
  StackId stack(std::uint64_t hash, std::span<const FrameId> frames, std::uint64_t cut);
  ThreadId thread(const Thread& thread) { return static_cast<ThreadId>(threads_(thread)); }
  void op_source(const OpSource& source) { op_sources_(source); }
  void source_file(const SourceFile& file) {
    if (!anonymizer_) source_files_(file);
  }
  void source_line(const SourceLine& line) {
    if (!anonymizer_) source_lines_(line);
  }

  // The event as it may be written: names that reveal nothing stay readable.
  Setting shown(Setting row);
  Mark shown(Mark row);
  Report shown(Report report);

  const Dictionaries& all() const { return all_; }

 private:
  StringId reveal(StringId id);
  StringId remember(StringId id, std::string_view text);
  const std::string& clear_text(StringId id) const { return clear_[std::to_underlying(id)]; }

  Dictionaries all_ = initial_dictionaries();
  Interner<std::string> strings_{all_.strings};
  Interner<Pool> pools_{all_.pools};
  Interner<Site> sites_{all_.sites};
  Interner<Frame> frames_{all_.frames};
  Interner<Thread> threads_{all_.threads};
  Interner<OpSource> op_sources_{all_.op_sources};
  Interner<SourceFile> source_files_{all_.source_files};
  Interner<SourceLine> source_lines_{all_.source_lines};
  tsl::robin_map<std::uint64_t, StackId, support::SecretHash> stacks_;

  std::optional<Anonymizer> anonymizer_;
  std::vector<std::string> clear_{""};  // anonymized: what was given for each string id
};

}  // namespace vramscope::trace
