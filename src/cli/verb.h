// How a sub-command joins the program: one file verbs/<name>.cpp, found by the build, that ends with
//
//   const Register kVerb{{.name = "dump", .group = Group::inspect, .help = "...", .examples = "...", .make = make<Dump>}};
//
// where Dump has `void declare(Arguments&)` and `Result<int> run()`. Only arguments_cli11.cpp knows the option parser.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// What a verb accepts. Targets keep their value if the option is not given, and must outlive parsing.
class Arguments {
 public:
  virtual ~Arguments() = default;
  // `names`: "-o,--output".
  virtual void flag(std::string_view names, bool& target, std::string_view help) = 0;
  virtual void text(std::string_view names, std::string& target, std::string_view help, std::string_view value_name = "TEXT") = 0;
  virtual void texts(std::string_view names, std::vector<std::string>& target, std::string_view help,
                     std::string_view value_name = "TEXT") = 0;
  virtual void choice(std::string_view names, std::string& target, const std::vector<std::string>& choices,
                      std::string_view help) = 0;
  virtual void size(std::string_view names, std::uint64_t& target, std::string_view help) = 0;  // "512MiB"
  virtual void number(std::string_view names, double& target, std::string_view help) = 0;
  virtual void count(std::string_view names, std::uint64_t& target, std::string_view help) = 0;
  // Words without a dash, in the order of the calls.
  virtual void operand(std::string_view name, std::string& target, std::string_view help, bool required = true) = 0;
  virtual void operands(std::string_view name, std::vector<std::string>& target, std::string_view help, bool required = true) = 0;
  // Everything from the first word on, or after "--", unchanged.
  virtual void command(std::vector<std::string>& target, std::string_view help) = 0;
};

class VerbBody {
 public:
  virtual ~VerbBody() = default;
  virtual void declare(Arguments& arguments) = 0;
  // Returns the exit code. An error is printed as one line and results in 2.
  virtual Result<int> run() = 0;
};

template <typename Body>
std::unique_ptr<VerbBody> make() {
  return std::make_unique<Body>();
}

// Order in the help.
enum class Group { record, answer, inspect, other };

struct Verb {
  std::string_view name;
  Group group = Group::other;
  std::string_view help;      // one line
  std::string_view examples;  // lines, each indented by two spaces
  std::unique_ptr<VerbBody> (*make)() = nullptr;
};

// All of them, by group and name.
std::vector<Verb> verbs();

struct Register {
  explicit Register(const Verb& verb);
};

// Parses and runs. Returns the exit code.
int run_program(int argc, char** argv);

}  // namespace vramscope::cli
