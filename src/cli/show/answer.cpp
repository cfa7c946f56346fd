#include "cli/show/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analyze/source_words.h"
#include "analyze/verdict/ranks.h"
#include "cli/run_folder.h"
#include "cli/show/terminal.h"
#include "support/json_writer.h"
#include "support/units.h"

namespace vramscope::cli {

void AnswerOptions::declare(Arguments& arguments) {
  arguments.operand("trace", trace, kTraceHelp);
  arguments.text("--where", where, "count only matching blocks, e.g. 'layer:conv2d_1 and size>1MiB'", "FILTER");
  arguments.text("--place", place, kPlaceHelp, "PLACE");
  arguments.count("-n,--rows", rows, kRowsHelp);
  arguments.flag("--json", json, kJsonHelp);
  arguments.flag("--ascii", ascii, "draw plots with # and . only");
}

Result<int> AnswerOptions::place_of(const analyze::Engine& engine) const {
  if (place.empty()) return -1;
  std::string known;
  auto places = engine.places();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].name == place || std::to_string(i) == place) return static_cast<int>(i);
    known += fmt::format("{}{} ({})", i > 0 ? ", " : "", places[i].name, i);
  }
  return fail(fmt::format("unknown place \"{}\"; the trace has {}", place, known));
}

namespace {

bool g_damage_said = false;
constexpr std::size_t kLongestWord = 120;  // a path fits; a name of thousands of characters is cut

// What became of one trace of several.
struct Outcome {
  std::optional<Answer> answer;
  std::string why_not;    // without one
  bool no_match = false;  // the filter matches none of its blocks: not an error if other processes have some
};

Outcome ask_one(const AnswerOptions& options, const std::filesystem::path& trace,
                const std::function<Result<Answer>(const analyze::Engine&, int place)>& ask) {
  auto engine = analyze::Engine::open(trace);
  if (!engine) return {{}, engine.error().message};
  const analyze::Overview overview = engine->overview();
  const std::string& damage = overview.damage;
  const auto no_answer = [&](const std::string& reason) -> Outcome {
    return {{}, fmt::format("{}: {}", trace.filename().string(), damage.empty() ? reason : damage)};
  };
  auto place = options.place_of(*engine);
  if (!place) return no_answer(place.error().message);
  if (auto ok = engine->check_filter(options.where); !ok) return no_answer(ok.error().message);
  if (auto ok = engine->check_matches(options.where, options.every_place ? analyze::Engine::kEveryPlace : *place); !ok) {
    Outcome out = no_answer(ok.error().message);
    out.no_match = true;
    return out;
  }
  auto answer = ask(*engine, *place);
  if (!answer) return no_answer(answer.error().message);
  say_damage(trace, damage);
  say_missing(trace, overview.missing);
  say_source(overview);
  return {std::move(*answer), {}};
}

std::string json_of_processes(const std::vector<std::string>& answers) {
  support::JsonWriter json;
  json.begin_object().key("processes").begin_array();
  for (const std::string& answer : answers) json.document(answer);
  json.end_array().end_object();
  return json.text();
}

}  // namespace

std::string head_of(const std::filesystem::path& trace) {
  const auto rank = analyze::rank_in(trace);
  const std::string name = printable(trace.filename().string());
  return rank ? fmt::format("rank {}, {}", *rank, name) : name;
}

Result<int> answer_each(const AnswerOptions& options,
                        const std::function<Result<Answer>(const analyze::Engine&, int place)>& ask) {
  auto traces = traces_of(options.trace);
  if (!traces) return std::unexpected(traces.error());
  std::vector<std::string> parts;
  std::vector<Outcome> without;
  bool answered = false;
  for (const auto& trace : *traces) {
    Outcome outcome = ask_one(options, trace, ask);
    if (!outcome.answer) {
      if (traces->size() == 1) return fail(outcome.why_not);
      without.push_back(std::move(outcome));
      continue;
    }
    if (options.json) {
      parts.push_back(std::move(outcome.answer->json));
    } else {
      if (traces->size() > 1) fmt::print("{}{}\n", answered ? "\n" : "", dim(head_of(trace), wants_colour(stdout)));
      fmt::print("{}", outcome.answer->text);
    }
    answered = true;
  }
  for (const Outcome& outcome : without) say_failure(outcome.why_not, !(answered && outcome.no_match));
  if (options.json && answered) fmt::print("{}\n", traces->size() == 1 ? parts[0] : json_of_processes(parts));
  return 0;
}

std::unexpected<Error> no_event(const std::filesystem::path& trace) {
  return fail(fmt::format("{}: the trace has no events: the recording has just started, or ended as it started", trace.string()));
}

void say_failure(const std::string& message, bool counts) {
  g_damage_said |= counts;
  fmt::print(stderr, "vramscope: {}\n", printable(message));
}

void say_damage(const std::filesystem::path& trace, const std::string& damage) {
  if (damage.empty()) return;
  g_damage_said = true;
  fmt::print(stderr, "vramscope: {}: {}\n", printable(trace.filename().string()), printable(damage));
}

void say_missing(const std::filesystem::path& trace, const std::string& missing) {
  if (missing.empty()) return;
  fmt::print(stderr, "vramscope: {}: {}; see the totals with 'vramscope summary'\n", printable(trace.filename().string()),
             printable(missing));
}

void say_source(const analyze::Overview& overview) {
  const std::string source = analyze::source_in_words(overview);
  if (source.empty()) return;
  fmt::print(stderr, "vramscope: {}: {}\n", printable(std::filesystem::path(overview.path).filename().string()),
             printable(source, 700));
}

bool damage_was_said() { return g_damage_said; }

std::string headline(const std::string& text, bool alarm) {
  const std::string sentence = in_a_sentence(text);
  bool colour = wants_colour(stdout);
  auto strong = [&](const std::string& part) { return bold(alarm ? painted(part, kSignalColour) : part, colour); };
  std::size_t width = terminal_width();
  std::string out, line;
  if (width == 0) return strong(sentence) + "\n";
  for (std::size_t at = 0; at < sentence.size();) {
    std::size_t space = std::min(sentence.find(' ', at), sentence.size());
    std::string word = sentence.substr(at, space - at);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += strong(line) + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = space + 1;
  }
  return out + strong(line) + "\n";
}

std::string in_a_sentence(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    out += (at > 0 ? " " : "") + printable(std::string_view(text).substr(at, space - at), kLongestWord);
    at = space + 1;
  }
  return out;
}

std::string to_do(const std::string& advice) {
  if (advice.empty()) return {};
  const std::string text = paragraph(in_a_sentence(advice), 7);
  return fmt::format("\n{}  {}", bold("To do", wants_colour(stdout)), text.substr(7));
}

std::string mib(analyze::Bytes bytes) { return support::format_in(bytes, 1u << 20); }

std::string age(std::uint64_t us) { return us == 0 ? "new" : support::format_duration(us); }

std::string dash(const std::string& text) { return text.empty() ? "–" : printable(text, 60); }

std::string share(analyze::Bytes part, analyze::Bytes whole) {
  return whole == 0 ? "–" : support::format_percent(static_cast<double>(part) / static_cast<double>(whole));
}

std::string short_op(const std::string& op, const std::string& region) {
  std::string out = op.substr(op.rfind('/') == std::string::npos ? 0 : op.rfind('/') + 1);
  if (!out.empty() && region == "temp") out += ", temp";
  return out;
}

}  // namespace vramscope::cli
