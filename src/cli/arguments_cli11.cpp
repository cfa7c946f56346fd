// The only file that knows the option parser, which compiles slowly.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "cli/build_info.h"
#include "cli/help.h"
#include "cli/show/answer.h"
#include "cli/show/colour.h"
#include "cli/show/ranks.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"
#include "support/file.h"
#include "support/memory_budget.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

// "--rows" of "-n,--rows".
std::string long_name(std::string_view names) { return std::string(names.substr(names.rfind(',') + 1)); }

// Stricter than the parser's own conversion, which reads -1 as the largest number.
template <typename Number>
Number number_in(const std::string& option, const std::string& text, std::string_view expected) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw CLI::ValidationError(option, fmt::format("invalid number \"{}\": expected {}", text, expected));
  return value;
}

// The parser's own check would list the choices twice in the help.
std::function<std::string(const std::string&)> one_of(std::vector<std::string> choices) {
  return [choices = std::move(choices)](const std::string& text) {
    if (std::ranges::find(choices, text) != choices.end()) return std::string();
    return fmt::format("invalid value \"{}\": expected {}", text, fmt::join(choices, ", "));
  };
}

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
        ->check(one_of(choices))
        ->type_name(fmt::format("{}", fmt::join(choices, "|")));
  }
  void size(std::string_view names, std::uint64_t& target, std::string_view help) override {
    const auto read = [&target, &option = name_kept(names)](const std::string& text) {
      const auto bytes = support::parse_size(text);
      if (!bytes) throw CLI::ValidationError(option, bytes.error().message);
      target = *bytes;
    };
    app_.add_option_function<std::string>(std::string(names), read, std::string(help))->type_name("SIZE");
  }
  void number(std::string_view names, double& target, std::string_view help) override {
    const auto read = [&target, &option = name_kept(names)](const std::string& text) {
      target = number_in<double>(option, text, "a number");
    };
    app_.add_option_function<std::string>(std::string(names), read, std::string(help))->type_name("NUMBER");
  }
  void count(std::string_view names, std::uint64_t& target, std::string_view help) override {
    const auto read = [&target, &option = name_kept(names)](const std::string& text) {
      target = number_in<std::uint64_t>(option, text, "a non-negative integer");
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
  // Before the command and not one of our options: a typo, not a command.
  std::optional<std::string> unknown_option() const {
    if (command_ == nullptr || app_.remaining().empty() || !app_.remaining().front().starts_with('-')) return std::nullopt;
    return app_.remaining().front();
  }
  // Without "--", the command starts at the first word that is not one of our options.
  void take_command(const std::vector<std::string>& after_dashes) const {
    if (command_ == nullptr) return;
    *command_ = app_.remaining();
    command_->insert(command_->end(), after_dashes.begin(), after_dashes.end());
  }

 private:
  // What messages call an option, for as long as its reader may be called.
  const std::string& name_kept(std::string_view names) { return names_.emplace_back(long_name(names)); }

  CLI::App& app_;
  std::deque<std::string> names_;
  std::vector<std::string>* command_ = nullptr;
};

struct Candidate {
  Verb verb;
  CLI::App* app = nullptr;
  std::unique_ptr<VerbBody> body;
  std::unique_ptr<Cli11Arguments> arguments;
};

// What follows "--", which the parser must not see: its options belong to the command.
std::vector<std::string> split_at_dashes(int& argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    const std::vector<std::string> rest(argv + i + 1, argv + argc);
    argc = i;
    return rest;
  }
  return {};
}

// The parser's messages have another shape than ours.
std::string in_our_words(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  const std::vector<std::string> extra = app.remaining(true);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !extra.empty()) {
    const std::string& first = extra.front();
    return fmt::format("{} \"{}\"", first.starts_with('-') ? "unknown option" : "unexpected argument", first);
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch))
    return text.substr(0, text.find(':')) + (text.ends_with("missing") ? ": missing value" : ": given more than once");
  return text;
}

int complain(std::string_view message) {
  fmt::print(stderr, "vramscope: {}\n", printable(message));
  return 2;
}

// An answer that could not be written is a failure.
int answer(VerbBody& body) {
  const auto unwritten = [](int reason) { return complain(support::output_error(reason).error().message); };
  try {
    const Result<int> code = body.run();
    if (!code) return complain(code.error().message);
    if (std::fflush(stdout) != 0) return unwritten(errno);
    return *code == 0 && damage_was_said() ? 2 : *code;
  } catch (const std::filesystem::filesystem_error& error) {
    return complain(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    return unwritten(error.code().value());
  } catch (const std::bad_alloc&) {
    return complain(support::kNotEnoughMemory);
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

// Options of every verb that reads traces. A verb that starts a command leaves the rest of its line to that command.
void add_common_options(CLI::App& app) {
  app.add_option_function<std::string>(
         "--rank", [](const std::string& rank) { choose_rank(number_in<std::int64_t>("--rank", rank, "an integer")); },
         "use this rank of a run with several")
      ->type_name("NUMBER");
  app.add_option_function<std::string>("--color", choose_colour,
                                       "use colors: auto (default) colors a terminal's output unless NO_COLOR is set")
      ->check(one_of({"never", "auto", "always"}))
      ->type_name("never|auto|always");
}

std::vector<Candidate> add_verbs(CLI::App& app) {
  std::vector<Candidate> candidates;
  for (const Verb& verb : verbs()) {
    Candidate candidate{verb, app.add_subcommand(std::string(verb.name), std::string(verb.help)), verb.make(), nullptr};
    candidate.app->set_help_flag("-h,--help", "show this help");
    candidate.app->footer(fmt::format("Examples:\n{}", verb.examples));
    candidate.arguments = std::make_unique<Cli11Arguments>(*candidate.app);
    candidate.body->declare(*candidate.arguments);
    if (!candidate.arguments->has_command()) add_common_options(*candidate.app);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// The help of the verb that was asked about, else of the program.
int print_help(const std::vector<Candidate>& candidates, std::optional<std::string_view> first_word) {
  for (const Candidate& candidate : candidates)
    if (candidate.app->parsed() || candidate.verb.name == first_word) {
      fmt::print("{}", candidate.app->help("vramscope"));
      return 0;
    }
  fmt::print("{}", help_page());
  return 0;
}

int complain_about(const CLI::App& app, const CLI::ParseError& error, const std::vector<Candidate>& candidates,
                   std::optional<std::string_view> first_word) {
  const std::string problem = in_our_words(app, error);
  if (!first_word || first_word->starts_with('-')) return complain(fmt::format("{}; see 'vramscope --help'", problem));
  const bool known =
      std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.verb.name == first_word; });
  if (!known) return complain(fmt::format("unknown command \"{}\"; see 'vramscope --help'", *first_word));
  return complain(fmt::format("{}; see 'vramscope {} --help'", problem, *first_word));
}

int run_verb(Candidate& candidate, const std::vector<std::string>& after_dashes) {
  if (const auto option = candidate.arguments->unknown_option())
    return complain(fmt::format("unknown option \"{}\"; see 'vramscope {} --help'", *option, candidate.verb.name));
  candidate.arguments->take_command(after_dashes);
  return answer(*candidate.body);
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app("Every byte on the GPU, accounted for.", "vramscope");
  app.set_help_flag("");
  app.require_subcommand(0, 1);
  bool help = false;
  bool version = false;
  app.add_flag("-h,--help", help, "show this help");
  app.add_flag("--version", version, "show the version, commit and build");
  std::vector<Candidate> candidates = add_verbs(app);
  const auto first_word = argc > 1 ? std::optional<std::string_view>(argv[1]) : std::nullopt;
  std::vector<std::string> after_dashes;
  for (const Candidate& candidate : candidates)
    if (candidate.verb.name == first_word && candidate.arguments->has_command()) after_dashes = split_at_dashes(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return print_help(candidates, first_word);
  } catch (const CLI::ParseError& error) {
    return complain_about(app, error, candidates, first_word);
  }
  if (version) {
    fmt::print("vramscope {} ({})\n", VRAMSCOPE_VERSION, build_info());
    return 0;
  }
  for (Candidate& candidate : candidates)
    if (candidate.app->parsed()) return run_verb(candidate, after_dashes);
  fmt::print(help ? stdout : stderr, "{}", help_page());
  return help ? 0 : 2;
}

}  // namespace vramscope::cli
