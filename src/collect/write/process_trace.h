// The trace of one process: converts ordered events to those of the trace file, and keeps account of what is live.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/options.h"
#include "collect/order/merger.h"
#include "collect/spool/definitions.h"
#include "collect/write/live_set.h"
#include "collect/write/oom_account.h"
#include "collect/write/source_capture.h"
#include "support/secret_hash.h"
#include "trace/writer.h"

namespace vramscope::collect {

// Gives each spool id its id in the trace, once.
class TraceIds {
 public:
  TraceIds(trace::Writer& writer, const Definitions& definitions, const spool::Header& header)
      : writer_(writer), definitions_(definitions), header_(header) {}

  // An id whose definition is missing becomes the empty text or stack; check with the ..._missing() functions first.
  trace::StringId text(std::uint32_t id);
  trace::StackId stack(std::uint64_t id);
  trace::PoolId pool(std::uint8_t index);
  trace::ThreadId thread(std::uint32_t tid);
  void name_native_frames(const NativeSymbols& symbols) { native_symbol_ = symbols; }
  void keep_sources(SourceCapture* sources) { sources_ = sources; }

  bool text_missing(std::uint32_t id) const { return definitions_.text(id) == nullptr; }
  bool stack_missing(std::uint64_t id) const;
  bool pool_missing(std::uint8_t index) const;

 private:
  trace::FrameId frame(const spool::Frame& frame);

  trace::Writer& writer_;
  const Definitions& definitions_;
  const spool::Header& header_;
  NativeSymbols native_symbol_;
  SourceCapture* sources_ = nullptr;
  std::vector<std::optional<trace::StringId>> texts_;  // by spool id, which count up from 1
  tsl::robin_map<std::uint64_t, trace::StackId, support::SecretHash> stacks_;
  tsl::robin_map<std::uint32_t, trace::ThreadId, support::SecretHash> threads_;
  std::map<std::uint8_t, trace::PoolId> pools_;
  std::map<std::string, int> pool_names_;
};

class ProcessTrace {
 public:
  ProcessTrace(trace::Writer writer, const Definitions& definitions, const spool::Header& header);

  void name_native_frames(const NativeSymbols& symbols) { ids_.name_native_frames(symbols); }
  // Passes the locations of new frames and ops to `sources`, which must outlive this object, or to nobody (NULL).
  void keep_sources(SourceCapture* sources) {
    sources_ = sources;
    ids_.keep_sources(sources);
  }

  // False: a definition that the event needs has not arrived yet. The event is then not written, unless `last_call` is set.
  bool write(const Event& event, std::uint64_t time_us, bool last_call);

  // Writes an event of the collector itself. It gets the sequence number of the last recorded one.
  template <typename Row>
  void append(std::uint64_t time_us, const Row& row) {
    writer_.append({last_seq_, time_us, {}}, row);
  }
  void setting(std::uint64_t time_us, std::string_view key, std::string_view value);
  // Writes the recorder's running totals of every pool in use.
  void totals(std::uint64_t time_us, bool last_call);
  void op_source(const spool::OpSourceRecord& source);

  // Called with the account of each failed request that was final.
  void on_final_oom(std::function<void(const OomAccount&)> callback) { final_oom_callback_ = std::move(callback); }
  // Called with each context record: the trace's event needs a measurement that the caller has.
  void on_context(std::function<void(const spool::ContextRecord&)> callback) { context_callback_ = std::move(callback); }

  // Describes where our account and the recorder's totals differ; empty if they are equal.
  std::string differences() const;
  // The account of the pool of that name; NULL if the recorder has none (replay of a trace).
  LivePool* live_pool(std::string_view name, std::int64_t device);
  std::uint64_t names_missing() const { return names_missing_; }
  std::uint64_t live_twice() const;
  trace::Writer& writer() { return writer_; }
  std::optional<std::string> recorded_setting(std::string_view key) const;

 private:
  bool alloc(const Event& event, const trace::At& at, bool last_call);
  trace::SiteId site(const Event& event, const spool::AllocRecord& record, const spool::AllocExtra& extra);
  void free(const Event& event, const trace::At& at);
  void region(const Event& event, const trace::At& at);
  void oom(const Event& event, const trace::At& at);
  void setting(const Event& event, const trace::At& at);
  void report(const Event& event, const trace::At& at);
  void cancel_free(const Event& event, const trace::At& at);
  bool all_known(const Event& event) const;
  bool order_exact(std::uint8_t index, bool last_call) const;

  // The account of a failure examines every live block, which would be too slow for a program that fails all the time. So there
  // is a budget, which grows only with the events that are written.
  static constexpr std::uint64_t kOomWork = 50'000'000;
  static constexpr std::uint64_t kOomWorkPerEvent = 16;

  trace::Writer writer_;
  const Definitions& definitions_;
  const spool::Header& header_;
  TraceIds ids_;
  SourceCapture* sources_ = nullptr;
  std::vector<LivePool> live_;
  std::vector<trace::Site> sites_;  // by id
  std::map<std::string, std::string, std::less<>> settings_;
  std::function<void(const OomAccount&)> final_oom_callback_;
  std::function<void(const spool::ContextRecord&)> context_callback_;
  std::uint64_t last_seq_ = 0;
  std::uint64_t names_missing_ = 0;
  std::uint64_t oom_work_ = kOomWork;  // blocks that accounts of failures may still examine
};

}  // namespace vramscope::collect
