#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "analyze/verdict/budget.h"
#include "cli/output_file.h"
#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "support/owned_fd.h"
#include "support/owned_folder.h"

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

// GitHub interprets %, CR and LF of an annotation as escapes.
std::string escape_annotation(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '%' ? "%25" : c == '\n' ? "%0A" : c == '\r' ? "%0D" : std::string(1, c);
  return out;
}

// The caller's own streams, as in --budget <(command): naming one is intended.
bool is_own_stream(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

// A budget may come with a pull request, and an error quotes the line that it is about: a link in its place would show a line of
// any file of the person or machine that checks, and a pipe would wait for ever.
Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(fmt::format("{}: is a folder; name a budget file with --budget", path));
  if (std::filesystem::is_symlink(path, error) && !is_own_stream(path))
    return fail(fmt::format("{}: is a link, which is not followed; name the budget file itself with --budget", path));
  const support::OwnedFd file(is_own_stream(path) ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC)
                                                  : support::open_regular_file(path));
  if (!file) return fail(fmt::format("{}: cannot read this file; name a budget file with --budget", path));
  std::string out(analyze::kMostBudgetBytes + 1, '\0');  // one more: then it is rejected for its length
  std::size_t done = 0;
  for (ssize_t got = 0; done < out.size() && (got = ::read(file.get(), out.data() + done, out.size() - done)) > 0;)
    done += static_cast<std::size_t>(got);
  out.resize(done);
  return out;
}

Result<analyze::Engine> open_one(const std::string& place) {
  const auto trace = only_trace_of(place);
  if (!trace) return std::unexpected(trace.error());
  return analyze::Engine::open(*trace);
}

class CheckVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", trace_, kOneTraceHelp);
    arguments.text("--budget", budget_, "TOML file with the limits (docs/guide/check.md)", "FILE");
    arguments.text("--baseline", baseline_, "trace to compare with in [baseline] limits", "TRACE");
    arguments.text("--where", where_, "apply limits on live bytes and growth only to matching blocks", "FILTER");
    arguments.text("--junit", junit_, "also write the result as JUnit XML", "FILE");
    arguments.flag("--github", github_, "also print GitHub annotations");
    arguments.flag("--json", json_, kJsonHelp);
  }

  Result<int> run() override {
    if (budget_.empty()) return fail("no budget given; name a budget file with --budget");
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
    say_source(overview);
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
    for (const std::string& line : check.passed) fmt::print("  passed: {}\n", in_a_sentence(line));
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
                      .help = "enforce memory budgets in CI (exit code 1 if one is exceeded)",
                      .examples =
                          "  vramscope check run.vram --budget vram.toml\n"
                          "  vramscope check run.vram --budget vram.toml --baseline main.vram --junit vram.xml --github\n",
                      .make = make<CheckVerb>}};

}  // namespace

}  // namespace vramscope::cli
