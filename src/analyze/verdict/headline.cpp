#include "analyze/verdict/headline.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kMost = 5;
constexpr std::size_t kMostTroubles = 2;       // in the headline: what happened, and why
constexpr std::int64_t kInterrupt = 2;         // SIGINT: Ctrl-C ends many a recording
constexpr std::int64_t kAfterInterrupt = 130;  // what a shell makes of it

// All that is not a saving.
constexpr std::pair<std::string_view, Severity> kSeverities[] = {
    {"died", Severity::died},
    {"oom", Severity::out_of_memory},
    {"leak", Severity::leak},
    {"held-tensors", Severity::leak},
    {"lost-events", Severity::fault},
    {"retrace", Severity::fault},
    {"persistent-tape", Severity::fault},
    {"baked-constant", Severity::fault},
    {"float64", Severity::fault},
    {"donation-failed", Severity::fault},
};

// Numbers of Linux, where traces are recorded.
constexpr std::pair<std::int64_t, std::string_view> kSignals[] = {
    {1, "SIGHUP"},  {3, "SIGQUIT"},  {4, "SIGILL"},   {6, "SIGABRT"},  {7, "SIGBUS"},   {8, "SIGFPE"},
    {9, "SIGKILL"}, {11, "SIGSEGV"}, {13, "SIGPIPE"}, {15, "SIGTERM"}, {24, "SIGXCPU"}, {25, "SIGXFSZ"},
};

std::string signal_name(std::int64_t number) {
  const auto* known = std::ranges::find(kSignals, number, [](const auto& pair) { return pair.first; });
  return known != std::end(kSignals) ? std::string(known->second) : fmt::format("signal {}", number);
}

// The verb alone: "was killed by SIGKILL".
std::string death_of(const Ending& ending) {
  if (const auto signal = ending.signal) return *signal == kInterrupt ? "" : "was killed by " + signal_name(*signal);
  const std::int64_t code = ending.exit_code.value_or(0);
  return code == 0 || code == kAfterInterrupt ? "" : fmt::format("exited with code {}", code);
}

Finding died(const Ending& ending) {
  Finding out;
  out.id = "died";
  out.title = fmt::format("The program {}.", ending_words(ending));
  out.cause = "The recording shows neither a failed request nor growth that explains it.";
  if (ending.signal == 9)
    out.remedy =
        "If nobody stopped it, the system may have run out of memory: check the kernel log (dmesg) and the job's limits.";
  out.view = "timeline";
  out.at = "end";
  return out;
}

// "..., and the program was killed by SIGKILL."
void add_ending(std::string& title, const std::string& words) {
  if (title.ends_with('.')) title.pop_back();
  title += fmt::format(", and the program {}.", words);
}

// Whether it is said before what the run needs. A saving must be half of that; why the peak is higher than the steady steps is
// part of that sentence.
bool leads(const Finding& finding, Bytes peak) {
  if (severity_of(finding.id) < Severity::saving) return true;
  return !finding.id.starts_with("peak-is-") && peak > 0 && finding.at_stake.value_or(0) >= peak / 2;
}

}  // namespace

Severity severity_of(std::string_view finding_id) {
  const auto* known = std::ranges::find(kSeverities, finding_id, [](const auto& pair) { return pair.first; });
  return known != std::end(kSeverities) ? known->second : Severity::saving;
}

bool is_useful(Bytes saving, Bytes peak) { return saving >= kUseful && saving >= peak / 100; }

std::string ending_words(const Ending& ending) {
  std::string out = death_of(ending);
  if (!out.empty() && ending.step > 0) out += fmt::format(" {} step {}", ending.inside_step ? "in" : "after", ending.step);
  return out;
}

std::vector<Finding> ranked(std::vector<Finding> findings, const Ending& ending, Bytes peak) {
  std::erase_if(findings, [&](const Finding& f) {
    return severity_of(f.id) >= Severity::fault && f.at_stake && !is_useful(*f.at_stake, peak);
  });
  const auto order = [](const Finding& f) { return std::pair(severity_of(f.id), ~f.at_stake.value_or(0)); };
  std::ranges::stable_sort(findings, {}, order);
  if (const std::string words = ending_words(ending); !words.empty()) {
    const bool explained = !findings.empty() && severity_of(findings[0].id) <= Severity::leak;
    if (explained)
      add_ending(findings[0].title, words);
    else
      findings.insert(findings.begin(), died(ending));
  }
  if (findings.size() > kMost) findings.resize(kMost);
  for (Finding& f : findings)
    if (severity_of(f.id) <= Severity::leak) f.severity = "signal";
  return findings;
}

std::string headline(std::string_view need, std::span<const Finding> findings, Bytes peak) {
  std::vector<std::string_view> said;
  for (const Finding& f : findings)
    if (severity_of(f.id) <= Severity::leak && said.size() < kMostTroubles) said.push_back(f.title);
  // What a run needs that leaks or ran out of memory is not known.
  const bool need_is_known = said.empty() || severity_of(findings[0].id) == Severity::died;
  if (said.empty() && !findings.empty() && leads(findings[0], peak)) said.push_back(findings[0].title);
  if (need_is_known) said.push_back(need);
  return fmt::format("{}", fmt::join(said, " "));
}

std::string headline(const Overview& overview, const Findings& findings) {
  const auto main = static_cast<std::size_t>(overview.main_place);
  const bool has_place = overview.main_place >= 0 && main < overview.places.size();
  return headline(overview.sentence, findings.findings, has_place ? overview.places[main].peak : 0);
}

Result<std::string> headline_of(const std::filesystem::path& trace) try {
  const auto engine = Engine::open(trace);
  if (!engine) return std::unexpected(engine.error());
  return headline(engine->overview(), engine->findings());
} catch (const std::bad_alloc&) {
  return not_enough_memory(trace);
}

}  // namespace vramscope::analyze
