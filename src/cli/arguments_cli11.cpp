// The only file that knows the option parser: it compiles slowly.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <system_error>

#include "cli/answer.h"
#include "cli/colour.h"
#include "cli/help.h"
#include "cli/ranks.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class Cli11Arguments final : public Arguments {
 public:
  explicit Cli11Arguments(CLI::App& app) : app_(app) {}

  void flag(std::string_view names, bool& target, std::string_view help) override {
    app_.add_flag(std::string(names), target, std::string(help));
  }
  void text(std::string_view names, std::string& target, std::string_view help, std::string_view value_name) override {
    app_.add_option(std::string(names), target, std::string(help))->type_name(std::string(value_name));
  }
  void texts(std::string_view names, std::vector<std::string>& target, std::string_view help,
             std::string_view value_name) override {
    app_.add_option(std::string(names), target, std::string(help))->type_name(std::string(value_name))->take_all();
  }
  void choice(std::string_view names, std::string& target, const std::vector<std::string>& choices,
              std::string_view help) override {
    app_.add_option(std::string(names), target, std::string(help))
        ->check(CLI::IsMember(choices))
        ->type_name(fmt::format("{}", fmt::join(choices, "|")));
  }
  void size(std::string_view names, std::uint64_t& target, std::string_view help) override {
    const auto read = [&target](const std::string& text) {
      const auto bytes = support::parse_size(text);
      if (!bytes) throw CLI::ValidationError(bytes.error().message);
      target = *bytes;
    };
    app_.add_option_function<std::string>(std::string(names), read, std::string(help))->type_name("SIZE");
  }
  void number(std::string_view names, double& target, std::string_view help) override {
    app_.add_option(std::string(names), target, std::string(help))->type_name("NUMBER");
  }
  void count(std::string_view names, std::uint64_t& target, std::string_view help) override {
    // The parser's own reading takes -1 for the largest number there is.
    const auto read = [&target](const std::string& text) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size())
        throw CLI::ValidationError(fmt::format("'{}' is not a number from 0 on", text));
      target = value;
    };
    app_.add_option_function<std::string>(std::string(names), read, std::string(help))->type_name("N");
  }
  void operand(std::string_view name, std::string& target, std::string_view help, bool required) override {
    app_.add_option(std::string(name), target, std::string(help))->required(required)->type_name("");
  }
  void operands(std::string_view name, std::vector<std::string>& target, std::string_view help, bool required) override {
    app_.add_option(std::string(name), target, std::string(help))->required(required)->type_name("");
  }
  void command(std::vector<std::string>& target, std::string_view help) override {
    app_.prefix_command();
    app_.description(
        fmt::format("{}\n\n  vramscope {} [OPTIONS] -- COMMAND...    {}", app_.get_description(), app_.get_name(), help));
    command_ = &target;
  }

  bool has_command() const { return command_ != nullptr; }
  // Before the command, and none of ours: a slip of the pen, not a command.
  std::optional<std::string> unknown_option() const {
    if (command_ == nullptr || app_.remaining().empty() || !app_.remaining().front().starts_with("-")) return std::nullopt;
    return app_.remaining().front();
  }
  // Without "--" the command begins at the first word that is no option of ours.
  void take_command(const std::vector<std::string>& after_dashes) const {
    if (command_ == nullptr) return;
    *command_ = app_.remaining();
    command_->insert(command_->end(), after_dashes.begin(), after_dashes.end());
  }

 private:
  CLI::App& app_;
  std::vector<std::string>* command_ = nullptr;
};

struct Candidate {
  Verb verb;
  CLI::App* app = nullptr;
  std::unique_ptr<VerbBody> body;
  std::unique_ptr<Cli11Arguments> arguments;
};

// What follows "--", which the parser must not see: the options in it are the command's own.
std::vector<std::string> split_at_dashes(int& argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    const std::vector<std::string> rest(argv + i + 1, argv + argc);
    argc = i;
    return rest;
  }
  return {};
}

int complain(std::string_view message) {
  fmt::print(stderr, "vramscope: {}\n", printable(message));
  return 2;
}

// An answer that could not be written is none.
int answer(VerbBody& body) {
  const auto unwritten = [](int reason) { return complain(fmt::format("the answer cannot be written: {}", strerror(reason))); };
  try {
    const Result<int> code = body.run();
    if (!code) return complain(code.error().message);
    if (std::fflush(stdout) != 0) return unwritten(errno);
    return *code == 0 && damage_was_said() ? 2 : *code;
  } catch (const std::system_error& error) {
    return unwritten(error.code().value());
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app("Every byte on the GPU, accounted for.", "vramscope");
  app.set_help_flag("");
  app.require_subcommand(0, 1);
  bool help = false;
  bool version = false;
  app.add_flag("-h,--help", help, "show this page");
  app.add_flag("--version", version, "show the version");
  std::vector<Candidate> candidates;
  for (const Verb& verb : verbs()) {
    Candidate candidate{verb, app.add_subcommand(std::string(verb.name), std::string(verb.help)), verb.make(), nullptr};
    candidate.app->set_help_flag("-h,--help", "show this page");
    candidate.app->footer(fmt::format("Examples:\n{}", verb.examples));
    candidate.arguments = std::make_unique<Cli11Arguments>(*candidate.app);
    candidate.body->declare(*candidate.arguments);
    if (!candidate.arguments->has_command())
      candidate.app
          ->add_option_function<std::int64_t>(
              "--rank", [](const std::int64_t& rank) { choose_rank(rank); }, "of a run with several ranks, this one")
          ->type_name("NUMBER");
    if (!candidate.arguments->has_command())
      candidate.app
          ->add_option_function<std::string>("--color", choose_colour, "colours: a terminal gets them, unless NO_COLOR is set")
          ->check(CLI::IsMember({"never", "auto", "always"}))
          ->type_name("never|auto|always");
    candidates.push_back(std::move(candidate));
  }
  std::vector<std::string> after_dashes;
  for (const Candidate& candidate : candidates)
    if (argc > 1 && candidate.verb.name == argv[1] && candidate.arguments->has_command())
      after_dashes = split_at_dashes(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const Candidate& candidate : candidates)
      if (candidate.app->parsed() || (argc > 1 && candidate.verb.name == argv[1])) {
        fmt::print("{}", candidate.app->help("vramscope"));
        return 0;
      }
    fmt::print("{}", help_page());
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string verb = argc > 1 && argv[1][0] != '-' ? fmt::format(" {}", argv[1]) : "";
    const bool known =
        std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) { return argc > 1 && c.verb.name == argv[1]; });
    if (!known && !verb.empty()) return complain(fmt::format("there is no verb '{}'; see 'vramscope --help'", argv[1]));
    return complain(fmt::format("{}; see 'vramscope{} --help'", error.what(), verb));
  }
  if (version) {
    fmt::print("vramscope {}\n", VRAMSCOPE_VERSION);
    return 0;
  }
  for (Candidate& candidate : candidates) {
    if (!candidate.app->parsed()) continue;
    if (const auto option = candidate.arguments->unknown_option())
      return complain(
          fmt::format("{} has no option {}; see 'vramscope {} --help'", candidate.verb.name, *option, candidate.verb.name));
    candidate.arguments->take_command(after_dashes);
    return answer(*candidate.body);
  }
  fmt::print(help ? stdout : stderr, "{}", help_page());
  return help ? 0 : 2;
}

}  // namespace vramscope::cli
