#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/answer.h"
#include "cli/output_file.h"
#include "cli/run_folder.h"
#include "cli/terminal.h"

namespace vramscope::cli {

namespace {

std::string escape_xml(const std::string& text) {
  std::string out;
  for (char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// GitHub reads %, CR and LF of an annotation as escapes.
std::string escape_annotation(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '%' ? "%25" : c == '\n' ? "%0A" : c == '\r' ? "%0D" : std::string(1, c);
  return out;
}

Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return fail(fmt::format("{} is a folder, not a budget file", path));
  std::ifstream file(path);
  if (!file) return fail(fmt::format("cannot read {}; name a budget file with --budget", path));
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

Result<analyze::Engine> open_one(const std::string& place) {
  auto traces = traces_of(place);
  if (!traces) return std::unexpected(traces.error());
  if (traces->size() > 1) return fail(fmt::format("{} holds {} traces; name one of them", place, traces->size()));
  return analyze::Engine::open(traces->front());
}

class CheckVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", trace_, "a .vram file, or the folder of a run with one trace");
    arguments.text("--budget", budget_, "file with the limits (docs/guide/check.md)", "FILE");
    arguments.text("--baseline", baseline_, "a trace that the [baseline] limits compare with", "TRACE");
    arguments.text("--where", where_, "limits on live bytes and growth count matching blocks only", "FILTER");
    arguments.text("--junit", junit_, "also write the result as JUnit XML", "FILE");
    arguments.flag("--github", github_, "also print GitHub annotations");
    arguments.flag("--json", json_, "for programs");
  }

  Result<int> run() override {
    if (budget_.empty()) return fail("check needs --budget FILE");
    if (!junit_.empty())
      if (auto ok = not_an_input(junit_, {trace_, budget_, baseline_}); !ok) return std::unexpected(ok.error());
    auto text = read_text(budget_);
    if (!text) return std::unexpected(text.error());
    auto engine = open_one(trace_);
    if (!engine) return std::unexpected(engine.error());
    std::optional<analyze::Engine> baseline;
    if (!baseline_.empty()) {
      auto other = open_one(baseline_);
      if (!other) return std::unexpected(other.error());
      baseline.emplace(std::move(*other));
    }
    auto check = analyze::check(*engine, *text, baseline ? &*baseline : nullptr, where_);
    const analyze::Overview overview = engine->overview();
    const std::string& damage = overview.damage;
    if (!check)
      return fail(fmt::format("{}: {}: {}{}", trace_, budget_, check.error().message, damage.empty() ? "" : "; " + damage));
    say_damage(trace_, damage);
    say_missing(trace_, overview.missing);
    if (baseline) say_damage(baseline_, baseline->overview().damage);
    if (json_)
      fmt::print("{}\n", analyze::to_json(*check));
    else
      print(*check);
    if (github_)
      for (const analyze::Violation& v : check->violations)
        fmt::print("::error file={},line={},title=GPU memory budget::{}\n", printable(budget_), v.line,
                   escape_annotation(printable(v.message)));
    if (!junit_.empty())
      if (auto ok = write_junit(*check); !ok) return std::unexpected(ok.error());
    return check->violations.empty() ? 0 : 1;
  }

 private:
  void print(const analyze::Check& check) const {
    fmt::print("{}", headline(check.sentence, !check.violations.empty()));
    if (!check.violations.empty()) fmt::print("\n");
    for (const analyze::Violation& v : check.violations)
      fmt::print("  {}:{}: {}: {}\n", printable(budget_), v.line, printable(v.rule), in_a_sentence(v.message));
    if (!check.passed.empty()) fmt::print("\n");
    for (const std::string& line : check.passed) fmt::print("  kept: {}\n", in_a_sentence(line));
  }

  Status write_junit(const analyze::Check& check) const {
    std::string xml = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"vramscope check\" tests=\"{}\" failures=\"{}\">\n",
        check.rules, check.violations.size());
    for (const analyze::Violation& v : check.violations)
      xml += fmt::format("  <testcase classname=\"{}\" name=\"{}\"><failure message=\"{}\">{}:{}</failure></testcase>\n",
                         escape_xml(budget_), escape_xml(v.rule), escape_xml(v.message), escape_xml(budget_), v.line);
    for (const std::string& passed : check.passed)
      xml += fmt::format("  <testcase classname=\"{}\" name=\"{}\"/>\n", escape_xml(budget_),
                         escape_xml(passed.substr(0, passed.find(": "))));
    return write_output(junit_, xml + "</testsuite>\n");
  }

  std::string trace_, budget_, baseline_, where_, junit_;
  bool github_ = false, json_ = false;
};

const Register kVerb{{.name = "check",
                      .group = Group::answer,
                      .help = "limits for CI: exit code 1 where a trace breaks its budget",
                      .examples =
                          "  vramscope check run.vram --budget vram.toml\n"
                          "  vramscope check run.vram --budget vram.toml --baseline main.vram --junit vram.xml --github\n",
                      .make = make<CheckVerb>}};

}  // namespace

}  // namespace vramscope::cli
