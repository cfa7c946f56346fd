#include "serve/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "analyze/query/filter_text.h"
#include "analyze/query/instant_text.h"
#include "analyze/verdict/notable.h"
#include "analyze/work.h"
#include "serve/answer_parts.h"
#include "serve/bundle.h"
#include "serve/engine_service.h"
#include "serve/gen/views.h"
#include "serve/params.h"
#include "support/gzip.h"

namespace vramscope::serve {

namespace {

constexpr std::string_view kPayload = "<script id=\"payload\" type=\"text/plain\">";
// Answers take milliseconds each on a long run.
constexpr std::size_t kMostAnswers = 6000;
constexpr std::size_t kMostLeftOut = 1000;  // they were made too
// Names of many kilobytes pack to nothing, but take their time and, in the browser, their memory.
constexpr std::uint64_t kMostTimesPacked = 16;
constexpr double kPackedShare = 0.75;  // base64 takes four bytes for three

std::string escaped(std::string_view text) {
  constexpr std::string_view kPlain = "-_.!~*'()";
  std::string out;
  for (const char c : text) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kPlain.find(c) != std::string_view::npos;
    if (plain)
      out.push_back(c);
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

using Parameters = std::vector<std::pair<std::string_view, std::string>>;

// Collects answers until the budget is used up. What is put in first is what matters most.
class Payload {
 public:
  Payload(Service& service, const Library& library, std::uint64_t budget)
      : service_(service), library_(library), budget_(budget) {}

  // False: no room (or no such answer).
  bool add(std::string_view name, const Parameters& params) {
    const std::string key = request_key(name, params);
    if (seen_.contains(key)) return true;
    if (work() > most_work_) {
      ++left_out_;
      return false;
    }
    Params given;
    for (const auto& [field, value] : params) given[std::string(field)] = value;
    const auto answer = dispatch(service_, name, given);
    if (!answer) return false;
    made_ += answer->size();
    const std::uint64_t cost = support::gzip(*answer, 1).size() + key.size() / 2;
    if (used_ + cost > budget_ || data_.size() + answer->size() > kMostTimesPacked * budget_) {
      ++left_out_;
      return false;
    }
    used_ += cost;
    seen_.insert(key);
    append(key);
    append(*answer);
    return true;
  }

  // Another key of an answer that is in already.
  void same(std::string_view name, const Parameters& params, const Parameters& known) {
    const std::string key = request_key(name, params);
    if (!seen_.insert(key).second) return;
    used_ += key.size() / 2;
    append(key);
    append("=" + request_key(name, known));
  }

  // No room, or enough has been asked: what comes now is only nice to have.
  bool full() const {
    return used_ >= budget_ || seen_.size() >= kMostAnswers || left_out_ >= kMostLeftOut || work() > most_work_;
  }
  // From now on, answers are made only as long as they take little work together: a trace of a few hundred bytes may have
  // millions of live blocks at each of thousands of instants.
  void limit_work(std::uint64_t most) {
    work_before_ = work();
    most_work_ = most;
  }
  std::uint64_t work() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < library_.size(); ++i)
      if (const auto trace = library_.trace(i)) sum += analyze::work_of((*trace)->engine());
    return sum + made_ - work_before_;  // a byte takes about as long as a block
  }
  std::uint64_t answers() const { return seen_.size(); }
  std::uint64_t left_out() const { return left_out_ + (work() > most_work_ ? 1 : 0); }
  std::string packed() const { return support::base64(support::gzip(data_, 9)); }

 private:
  void append(std::string_view part) {
    for (int shift = 0; shift < 32; shift += 8) data_.push_back(static_cast<char>((part.size() >> shift) & 0xff));
    data_ += part;
  }

  Service& service_;
  const Library& library_;
  std::uint64_t budget_;
  std::uint64_t most_work_ = ~std::uint64_t{0};
  std::uint64_t work_before_ = 0;
  std::uint64_t made_ = 0;  // bytes of answers, those that were left out included
  std::uint64_t used_ = 0;
  std::uint64_t left_out_ = 0;
  std::set<std::string> seen_;
  std::string data_;
};

// Instants that the page links to by name.
std::vector<std::string> named_instants(const Opened& opened) {
  std::vector<std::string> out = {"steady", "peak", "end"};
  for (std::size_t i = 0; i < std::min<std::size_t>(10, opened.ooms().events.size()); ++i)
    out.push_back(fmt::format("oom:{}", i + 1));
  for (const analyze::Finding& finding : opened.findings().findings)
    if (!finding.at.empty()) out.push_back(instant_of(opened, finding));
  for (const analyze::NotableInstant& notable :
       analyze::notable_instants(opened.engine(), opened.ooms(), fragmentation_of(opened)))
    out.push_back(notable.at);
  return out;
}

void add_first(Payload& payload, const Opened& opened, const std::string& trace) {
  const std::vector<std::string> instants = named_instants(opened);
  for (const FirstAsk& first : kFirstAsks) {
    if (!first.at_instant) payload.add(first.request, {{"trace", trace}});
    for (std::size_t i = 0; first.at_instant && i < instants.size(); ++i) {
      Parameters params = {{"trace", trace}, {"at", instants[i]}};
      if (!first.open.empty()) params.emplace_back("open", first.open);
      payload.add(first.request, params);
    }
  }
  for (const analyze::Finding& finding : opened.findings().findings) {
    if (finding.where.empty()) continue;
    const std::string at = finding.at.empty() ? "steady" : instant_of(opened, finding);
    payload.add("peak", {{"trace", trace}, {"at", at}, {"open", std::string(kFirstOpen)}, {"filter", finding.where}});
    payload.add("instant", {{"trace", trace}, {"at", at}, {"filter", finding.where}});
    if (finding.view == "leaks") payload.add("leaks", {{"trace", trace}, {"filter", finding.where}});
  }
}

// A damaged or forged trace may end at any time. The time axis ends where its tiles do: beyond, their numbers would wrap around.
std::uint64_t shown_us(const Opened& opened) {
  return std::min(opened.overview().duration_us, (std::uint64_t{1} << kHighestLevel) - 1);
}

std::uint64_t whole_level(std::uint64_t duration_us) {
  return std::max<std::uint64_t>(kLowestLevel,
                                 static_cast<std::uint64_t>(std::bit_width(std::max<std::uint64_t>(1, duration_us))));
}

// One level of the time axis, all tiles of it.
bool add_level(Payload& payload, const std::string& trace, std::uint64_t level, std::uint64_t duration_us,
               const std::string& by) {
  bool all = true;
  for (std::uint64_t tile = 0; (tile << level) <= duration_us && !payload.full(); ++tile) {
    const std::string at_level = fmt::format("{}", level);
    const std::string number = fmt::format("{}", tile);
    all &= payload.add("stack", {{"trace", trace}, {"by", by}, {"level", at_level}, {"tile", number}});
    if (by != "category") continue;
    payload.add("tracks", {{"trace", trace}, {"level", at_level}, {"tile", number}});
    payload.add("marks", {{"trace", trace}, {"level", at_level}, {"tile", number}});
  }
  return all;
}

// The live set at a moment: the page asks for it by the moment when somebody clicks, and by its text when it opens a link.
bool add_instant(Payload& payload, const Opened& opened, const std::string& trace, analyze::Moment moment) {
  const Parameters clicked = {{"trace", trace}, {"at", fmt::format("moment:{}", moment)}};
  if (!payload.add("instant", clicked)) return false;
  payload.same("instant", {{"trace", trace}, {"at", analyze::instant_text(opened.engine(), moment)}}, clicked);
  return true;
}

// What the page answers other filters, other orders and other instants from: all blocks, or those of the instants that have a
// name.
void add_all_blocks(Payload& payload, const Opened& opened, const std::string& trace) {
  if (payload.add("blocks", {{"trace", trace}})) return;
  for (const std::string& at : named_instants(opened)) payload.add("blocks", {{"trace", trace}, {"at", at}});
}

void add_steps(Payload& payload, const Opened& opened, const std::string& trace) {
  const analyze::Steps& steps = opened.steps();
  const std::size_t every = steps.steps.size() / 200 + 1;
  for (std::size_t i = 0; i < steps.steps.size(); ++i) {
    const analyze::Step& step = steps.steps[i];
    if (i % every != 0 && !step.outlier) continue;
    payload.add("instant", {{"trace", trace}, {"at", fmt::format("step:{}", step.number)}});
    add_instant(payload, opened, trace, step.peak_at);
  }
}

// One change at a time: all combinations would be thousands.
void add_whatif(Payload& payload, const Opened& opened, const std::string& trace) {
  if (!opened.whatif()) return;
  for (const analyze::StepWhatifRequest& change : opened.whatif()->single_changes())
    payload.add("whatif", {{"trace", trace},
                           {"batch", change.batch},
                           {"accumulate", change.accumulate},
                           {"precision", change.precision},
                           {"optimizer", change.optimizer},
                           {"allocator", change.allocator}});
}

// What a click on a category of the ledger opens. As the page writes it: linkOf in ui/src/views/overview/LedgerCard.svelte.
void add_categories(Payload& payload, const Opened& opened, const std::string& trace) {
  for (const char* at : {"steady", "peak", "end"}) {
    const auto live = opened.engine().live({.at = usable_instant(opened.engine(), at), .where = {}, .limit = 0});
    if (!live) continue;
    for (const analyze::Group& group : live->groups)
      payload.add("peak", {{"trace", trace},
                           {"at", at},
                           {"open", std::string(kFirstOpen)},
                           {"filter", "category:" + analyze::filter_word(group.keys[0])}});
  }
}

// What a click on a layer or a line opens.
void add_links(Payload& payload, const Opened& opened, const std::string& trace) {
  const std::string at = usable_instant(opened.engine(), "steady");
  if (const auto layers = opened.engine().layers(at))
    for (std::size_t i = 0; i < std::min<std::size_t>(60, layers->rows.size()); ++i)
      if (!layers->rows[i].name.empty())
        payload.add("peak", {{"trace", trace},
                             {"at", "steady"},
                             {"open", std::string(kFirstOpen)},
                             {"filter", analyze::filter_term("layer", layers->rows[i].name)}});
  const auto lines = opened.engine().live({.at = at, .by = {analyze::By::line}, .where = {}, .limit = 60});
  if (!lines) return;
  std::set<std::string> files;
  for (const analyze::Group& group : lines->groups) {
    const std::string& line = group.keys[0];
    if (line.empty()) continue;
    const std::string file = line.substr(0, line.rfind(':'));
    files.insert(file);
    payload.add("peak", {{"trace", trace},
                         {"at", "steady"},
                         {"open", std::string(kFirstOpen)},
                         {"filter", "line:" + line.substr(line.rfind('/') + 1)}});
  }
  for (const std::string& file : files)
    for (const char* when : {"steady", "peak", "end"}) payload.add("source", {{"trace", trace}, {"at", when}, {"file", file}});
}

// Live sets where a click into the timeline lands: the instants of the tiles' columns, coarse tiles first.
void add_clicks(Payload& payload, const Opened& opened, const std::string& trace, std::uint64_t duration_us) {
  const std::uint64_t top = whole_level(duration_us);
  for (std::uint64_t depth = 0; depth <= 4 && top >= kLowestLevel + depth; ++depth)
    for (std::uint64_t tile = 0; (tile << (top - depth)) <= duration_us; ++tile) {
      const std::uint64_t t0 = tile << (top - depth);
      const std::uint64_t t1 = std::min((tile + 1) << (top - depth), duration_us + 1);
      const auto columns = opened.engine().stacked({.t0_us = t0, .t1_us = t1, .width = kTileColumns, .where = {}});
      if (!columns) return;
      for (const analyze::Moment moment : columns->at)
        if (payload.full() || !add_instant(payload, opened, trace, moment)) return;
    }
}

void add_blocks(Payload& payload, const Opened& opened, const std::string& trace) {
  for (const char* at : {"steady", "peak", "end"}) {
    const auto blocks = opened.engine().live({.at = usable_instant(opened.engine(), at), .by = {}, .where = {}, .limit = 100});
    if (!blocks) continue;
    for (const analyze::Block& block : blocks->blocks)
      payload.add("block", {{"trace", trace}, {"id", fmt::format("{}", block.id)}});
  }
}

// What the views show and what a click in them opens.
void add_views(Payload& payload, const Opened& opened, const std::string& trace) {
  const std::uint64_t duration = shown_us(opened), top = whole_level(duration);
  for (std::uint64_t depth = 0; depth <= 3 && top >= kLowestLevel + depth; ++depth)
    add_level(payload, trace, top - depth, duration, "category");
  add_all_blocks(payload, opened, trace);
  add_steps(payload, opened, trace);
  add_whatif(payload, opened, trace);
  add_categories(payload, opened, trace);
  add_links(payload, opened, trace);
  add_blocks(payload, opened, trace);
  for (const char* by : {"layer", "op", "line", "dtype", "phase", "pool", "step"})
    for (std::uint64_t depth = 0; depth <= 2 && top >= kLowestLevel + depth; ++depth)
      add_level(payload, trace, top - depth, duration, by);
}

// The timeline ever finer, as long as there is room: single events of long runs are what is left out.
void add_details(Payload& payload, const Opened& opened, const std::string& trace) {
  const std::uint64_t duration = shown_us(opened), top = whole_level(duration);
  for (std::uint64_t depth = 4; depth <= 9 && top >= kLowestLevel + depth && !payload.full(); ++depth)
    if (!add_level(payload, trace, top - depth, duration, "category")) break;
  add_clicks(payload, opened, trace, duration);
}

// Calls `put` with each trace that can be opened, and its number.
template <typename Put>
void for_each_trace(const Library& library, Put put) {
  for (std::size_t i = 0; i < library.size(); ++i)
    if (const auto trace = library.trace(i)) put(**trace, fmt::format("{}", i));
}

}  // namespace

std::string request_key(std::string_view name, const Parameters& params) {
  std::string out(name);
  char separator = '?';
  for (const auto& [field, value] : params) {
    if (value.empty()) continue;
    out += fmt::format("{}{}={}", separator, field, escaped(value));
    separator = '&';
  }
  return out;
}

Result<Report> make_report(const std::shared_ptr<Library>& library, const ReportOptions& options) {
  const auto page = bundle();
  if (!page) return std::unexpected(page.error());
  const std::size_t place = page->find(kPayload);
  if (place == std::string_view::npos)
    return fail("the user interface in this program is damaged; rebuild or reinstall vramscope");
  if (options.budget < page->size() + 100'000)
    return fail(fmt::format("--report-budget is too small: the page itself takes {} bytes", page->size()));
  EngineService service(library);
  Payload payload(service, *library,
                  static_cast<std::uint64_t>(static_cast<double>(options.budget - page->size()) * kPackedShare));
  payload.add("hello", {});
  const std::size_t traces = library->size();
  for_each_trace(*library, [&](const Opened& opened, const std::string& trace) { add_first(payload, opened, trace); });
  payload.limit_work(options.most_work);
  for (std::size_t a = 0; a < std::min<std::size_t>(traces, 4); ++a)
    for (std::size_t b = 0; b < std::min<std::size_t>(traces, 4); ++b)
      for (const char* at : {"steady", "peak", "same"})
        for (const char* by : {"layer", "op", "line", "dtype"})
          if (a != b) payload.add("diff", {{"a", fmt::format("{}", a)}, {"b", fmt::format("{}", b)}, {"at", at}, {"by", by}});
  for_each_trace(*library, [&](const Opened& opened, const std::string& trace) { add_views(payload, opened, trace); });
  for_each_trace(*library, [&](const Opened& opened, const std::string& trace) { add_details(payload, opened, trace); });
  Report out;
  out.html = std::string(page->substr(0, place + kPayload.size())) + payload.packed() +
             std::string(page->substr(place + kPayload.size()));
  out.answers = payload.answers();
  out.left_out = payload.left_out();
  out.work = payload.work();
  return out;
}

}  // namespace vramscope::serve
