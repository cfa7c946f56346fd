#include "cli/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/ranks.h"
#include "cli/run_folder.h"
#include "cli/terminal.h"
#include "support/units.h"

namespace vramscope::cli {

void AnswerOptions::declare(Arguments& arguments) {
  arguments.operand("trace", trace, "a .vram file, or the folder of a run");
  arguments.text("--where", where, "only blocks that match, e.g. 'layer:conv2d_1 and size>1MiB'", "FILTER");
  arguments.text("--place", place, "device or kind of memory: its name or number, e.g. 'GPU 0', host", "PLACE");
  arguments.count("-n,--rows", rows, "rows of a table (0 = all)");
  arguments.flag("--json", json, "for programs: exact bytes");
  arguments.flag("--ascii", ascii, "plots with # and . only");
}

Result<int> AnswerOptions::place_of(const analyze::Engine& engine) const {
  if (place.empty()) return -1;
  std::string known;
  auto places = engine.places();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].name == place || std::to_string(i) == place) return static_cast<int>(i);
    known += fmt::format("{}{} ({})", i > 0 ? ", " : "", places[i].name, i);
  }
  return fail(fmt::format("there is no place '{}' in the trace; there are {}", place, known));
}

namespace {

bool g_damage_said = false;

// One line above the answer of one process among several.
std::string head_of(const std::filesystem::path& trace) {
  const auto rank = rank_in(trace);
  return rank ? fmt::format("rank {}, {}", *rank, trace.filename().string()) : trace.filename().string();
}

}  // namespace

Result<int> answer_each(const AnswerOptions& options,
                        const std::function<Result<Answer>(const analyze::Engine&, int place)>& ask) {
  auto traces = traces_of(options.trace);
  if (!traces) return std::unexpected(traces.error());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < traces->size(); ++i) {
    auto engine = analyze::Engine::open((*traces)[i]);
    if (!engine) return std::unexpected(engine.error());
    auto place = options.place_of(*engine);
    if (!place) return std::unexpected(place.error());
    auto answer = ask(*engine, *place);
    if (!answer) {
      const std::string damage = engine->overview().damage;
      return fail(fmt::format("{}: {}", (*traces)[i].filename().string(), damage.empty() ? answer.error().message : damage));
    }
    say_damage((*traces)[i], engine->overview().damage);
    say_missing((*traces)[i], engine->overview().missing);
    if (options.json) {
      parts.push_back(std::move(answer->json));
      continue;
    }
    if (traces->size() > 1) fmt::print("{}{}\n", i > 0 ? "\n" : "", dim(head_of((*traces)[i]), wants_colour(stdout)));
    fmt::print("{}", answer->text);
  }
  if (options.json && parts.size() == 1) fmt::print("{}\n", parts[0]);
  if (options.json && parts.size() > 1) fmt::print("{{\"processes\": [{}]}}\n", fmt::join(parts, ",\n"));
  return 0;
}

void say_damage(const std::filesystem::path& trace, const std::string& damage) {
  if (damage.empty()) return;
  g_damage_said = true;
  fmt::print(stderr, "vramscope: {}: {}\n", trace.filename().string(), damage);
}

void say_missing(const std::filesystem::path& trace, const std::string& missing) {
  if (missing.empty()) return;
  fmt::print(stderr, "vramscope: {}: {}; 'vramscope summary' has the totals\n", trace.filename().string(), missing);
}

bool damage_was_said() { return g_damage_said; }

std::string headline(const std::string& sentence, bool alarm) {
  bool colour = wants_colour(stdout);
  auto strong = [&](const std::string& text) { return bold(alarm ? painted(text, kSignalColour) : text, colour); };
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

std::string to_do(const std::string& advice) {
  if (advice.empty()) return {};
  return fmt::format("\n{}  {}\n", bold("To do", wants_colour(stdout)), advice);
}

std::string mib(analyze::Bytes bytes) { return support::format_in(bytes, 1u << 20); }

std::string signed_mib(std::int64_t bytes) {
  if (bytes == 0) return "0";
  std::string figure = support::format_in(static_cast<std::uint64_t>(std::abs(bytes)), 1u << 20);
  return (bytes < 0 ? "−" : "+") + figure;
}

std::string age(std::uint64_t us) {
  if (us == 0) return "new";
  if (us < 1000) return fmt::format("{} µs", us);
  if (us < 1'000'000) return fmt::format("{:.1f} ms", static_cast<double>(us) / 1e3);
  if (us < 600'000'000) return fmt::format("{:.1f} s", static_cast<double>(us) / 1e6);
  return support::format_duration(us);
}

std::string dash(const std::string& text) { return text.empty() ? "–" : printable(text, 60); }

std::string share(analyze::Bytes part, analyze::Bytes whole) {
  return whole == 0 ? "–" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string short_op(const std::string& op, const std::string& region) {
  std::string out = op.substr(op.rfind('/') == std::string::npos ? 0 : op.rfind('/') + 1);
  if (!out.empty() && region == "temp") out += ", temp";
  return out;
}

}  // namespace vramscope::cli
