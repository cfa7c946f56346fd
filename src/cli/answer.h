// What all verbs that answer have in common: which trace, which place, which filter, text or JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "analyze/json.h"
#include "cli/verb.h"

namespace vramscope::cli {

struct AnswerOptions {
  std::string trace;
  std::string where;
  std::string place;  // name or index; empty = main
  std::uint64_t rows = 10;
  bool json = false;
  bool ascii = false;

  void declare(Arguments& arguments);
  // Index for the engine's calls, or an error that lists the places.
  Result<int> place_of(const analyze::Engine& engine) const;
};

// One trace's answer: what to print and the same as JSON.
struct Answer {
  std::string text, json;
};

// Opens every trace of the file or folder, prints the answers (a folder's with a heading each), or one JSON document.
Result<int> answer_each(const AnswerOptions& options,
                        const std::function<Result<Answer>(const analyze::Engine&, int place)>& ask);

// On stderr, where a trace is not whole: what is missing. What can be read is answered all the same, but never with exit code 0.
void say_damage(const std::filesystem::path& trace, const std::string& damage);
// What the figures lack though nothing is damaged.
void say_missing(const std::filesystem::path& trace, const std::string& missing);
bool damage_was_said();

// First line of an answer: bold, wrapped at the terminal's width; a leak or a failure in the colour of alarms.
std::string headline(const std::string& sentence, bool alarm = false);
// "To do  <remedy>", empty for an empty remedy.
std::string to_do(const std::string& advice);
// Figure in the unit of the table's head.
std::string mib(analyze::Bytes bytes);
std::string signed_mib(std::int64_t bytes);
// "new", "33 µs", "4.5 ms", "5.0 s"
std::string age(std::uint64_t microseconds);
std::string dash(const std::string& text);  // "–" for what is not known
std::string share(analyze::Bytes part, analyze::Bytes whole);
// Last part of an op's path, and what kind of allocation it is where that is not its output.
std::string short_op(const std::string& op, const std::string& region = {});

}  // namespace vramscope::cli
