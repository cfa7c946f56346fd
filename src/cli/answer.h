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
  bool every_place = false;  // the answer is about all of them, so that --where may match blocks of any

  void declare(Arguments& arguments);
  // Index for the engine's calls, or an error that lists the places.
  Result<int> place_of(const analyze::Engine& engine) const;
};

// One trace's answer: what to print and the same as JSON.
struct Answer {
  std::string text, json;
};

// Opens every trace of the file or folder, prints the answers (a folder's with a heading each), or one JSON document. A trace of
// a folder that cannot be read does not hide the others: it gets its line on stderr.
Result<int> answer_each(const AnswerOptions& options,
                        const std::function<Result<Answer>(const analyze::Engine&, int place)>& ask);

// On stderr, where a trace is not whole: what is missing. What can be read is answered all the same, but never with exit code 0.
void say_damage(const std::filesystem::path& trace, const std::string& damage);
// What the figures lack though nothing is damaged.
void say_missing(const std::filesystem::path& trace, const std::string& missing);
bool damage_was_said();
// The same for a trace that gives no answer among others that do. `counts`: the exit code becomes 2.
void say_failure(const std::string& message, bool counts = true);

// The error for a trace that can be read and holds nothing.
std::unexpected<Error> no_event(const std::filesystem::path& trace);

// First line of an answer: bold, wrapped at the terminal's width; a leak or a failure in the colour of alarms.
std::string headline(const std::string& sentence, bool alarm = false);
// Words of ours with names of a trace among them: nothing that moves the cursor, no word that fills the screen.
std::string in_a_sentence(const std::string& text);
// "To do  <remedy>", empty for an empty remedy.
std::string to_do(const std::string& advice);
// Figure in the unit of the table's head.
std::string mib(analyze::Bytes bytes);
// "new", "33 µs", "4.5 ms", "5.0 s"
std::string age(std::uint64_t microseconds);
std::string dash(const std::string& text);  // "–" for what is not known
std::string share(analyze::Bytes part, analyze::Bytes whole);
// Last part of an op's path, and what kind of allocation it is where that is not its output.
std::string short_op(const std::string& op, const std::string& region = {});

}  // namespace vramscope::cli
