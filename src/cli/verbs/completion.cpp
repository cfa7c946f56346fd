#include <fmt/format.h>

#include "cli/verb.h"

namespace vramscope::cli {

namespace {

// The options of a verb, collected by letting it declare them.
class OptionNames final : public Arguments {
 public:
  void flag(std::string_view names, bool&, std::string_view help) override { add(names, help); }
  void text(std::string_view names, std::string&, std::string_view help, std::string_view) override { add(names, help); }
  void texts(std::string_view names, std::vector<std::string>&, std::string_view help, std::string_view) override {
    add(names, help);
  }
  void choice(std::string_view names, std::string&, const std::vector<std::string>&, std::string_view help) override {
    add(names, help);
  }
  void size(std::string_view names, std::uint64_t&, std::string_view help) override { add(names, help); }
  void number(std::string_view names, double&, std::string_view help) override { add(names, help); }
  void count(std::string_view names, std::uint64_t&, std::string_view help) override { add(names, help); }
  void operand(std::string_view, std::string&, std::string_view, bool) override {}
  void operands(std::string_view, std::vector<std::string>&, std::string_view, bool) override {}
  void command(std::vector<std::string>&, std::string_view) override { takes_command = true; }

  struct Option {
    std::string name;
    std::string help;
  };
  std::vector<Option> options;
  bool takes_command = false;

 private:
  void add(std::string_view names, std::string_view help) {
    while (!names.empty()) {
      const std::size_t comma = names.find(',');
      options.push_back({std::string(names.substr(0, comma)), std::string(help)});
      names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    }
  }
};

OptionNames options_of(const Verb& verb) {
  OptionNames names;
  verb.make()->declare(names);
  names.options.push_back({"--help", "show the help of the verb"});
  return names;
}

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string bash() {
  std::string all;
  std::string cases;
  for (const Verb& verb : verbs()) {
    all += fmt::format("{} ", verb.name);
    const OptionNames names = options_of(verb);
    std::string words;
    for (const auto& option : names.options) words += option.name + " ";
    cases += fmt::format("    {})\n      words=\"{}\" ;;\n", verb.name, words);
  }
  return fmt::format(
      "# eval \"$(vramscope completion bash)\"\n"
      "_vramscope() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\" i\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{}--help --version\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    if [ \"${{COMP_WORDS[i]}}\" = \"--\" ]; then\n"
      "      COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
      "      return\n"
      "    fi\n"
      "  done\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  if [[ \"$word\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _vramscope vramscope\n",
      all, cases);
}

std::string zsh() {
  std::string all;
  std::string cases;
  for (const Verb& verb : verbs()) {
    all += fmt::format("    {}\n", quoted(fmt::format("{}:{}", verb.name, verb.help)));
    std::string words;
    for (const auto& option : options_of(verb).options) {
      std::string help = option.help;
      for (std::size_t at = 0; (at = help.find_first_of("[]:", at)) != std::string::npos; at += 2) help.insert(at, "\\");
      words += fmt::format(" {}", quoted(fmt::format("{}[{}]", option.name, help)));
    }
    cases += fmt::format("    {}) _arguments{} '*:file:_files' ;;\n", verb.name, words);
  }
  return fmt::format(
      "#compdef vramscope\n"
      "# vramscope completion zsh > \"${{fpath[1]}}/_vramscope\"\n"
      "_vramscope() {{\n"
      "  local -a verbs=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n{}  esac\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = _vramscope ]; then _vramscope; else compdef _vramscope vramscope; fi\n",
      all, cases);
}

std::string fish() {
  std::string text = "# vramscope completion fish > ~/.config/fish/completions/vramscope.fish\n";
  for (const Verb& verb : verbs()) {
    text +=
        fmt::format("complete -c vramscope -n __fish_use_subcommand -f -a {} -d {}\n", verb.name, quoted(std::string(verb.help)));
    for (const auto& option : options_of(verb).options) {
      const bool is_long = option.name.starts_with("--");
      text += fmt::format("complete -c vramscope -n '__fish_seen_subcommand_from {}' {} {} -d {}\n", verb.name,
                          is_long ? "-l" : "-s", option.name.substr(is_long ? 2 : 1), quoted(option.help));
    }
  }
  return text;
}

class CompletionVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { arguments.operand("shell", shell_, "bash, zsh or fish"); }

  Result<int> run() override {
    if (shell_ != "bash" && shell_ != "zsh" && shell_ != "fish")
      return fail(fmt::format("unknown shell \"{}\": expected bash, zsh or fish", shell_));
    fmt::print("{}", shell_ == "bash" ? bash() : shell_ == "zsh" ? zsh() : fish());
    return 0;
  }

 private:
  std::string shell_;
};

const Register kVerb{{.name = "completion",
                      .group = Group::other,
                      .help = "print a completion script for bash, zsh or fish",
                      .examples = "  eval \"$(vramscope completion bash)\"\n"
                                  "  vramscope completion zsh > ~/.zfunc/_vramscope\n"
                                  "  vramscope completion fish > ~/.config/fish/completions/vramscope.fish\n",
                      .make = make<CompletionVerb>}};

}  // namespace

}  // namespace vramscope::cli
