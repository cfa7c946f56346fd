// What all verbs that answer questions have in common: which trace, which place, which filter, text or JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "analyze/json.h"
#include "cli/verb.h"

namespace vramscope::cli {

// Help of options that several verbs have.
inline constexpr const char* kTraceHelp = "a .vram file, or the folder of a run";
inline constexpr const char* kOneTraceHelp = "a .vram file, or a run folder with one trace";
inline constexpr const char* kPlaceHelp = "device or kind of memory, by name or number, e.g. 'GPU 0', host";
inline constexpr const char* kCompareWhereHelp = "count only matching blocks, e.g. 'category:activations'";
inline constexpr const char* kRowsHelp = "rows per table (0 = all)";
inline constexpr const char* kJsonHelp = "print JSON with exact bytes";
inline constexpr const char* kInstantHelp = "instant: peak, steady, end, step:N, oom, or a time such as 6.2s";

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

// Opens every trace of the file or folder, and prints the answers (with a heading for each trace of a folder), or one JSON
// document. If a trace of a folder cannot be read, the others are still answered, and one line on stderr names it.
Result<int> answer_each(const AnswerOptions& options,
                        const std::function<Result<Answer>(const analyze::Engine&, int place)>& ask);

// Prints on stderr what is missing in a damaged trace. What can be read is still answered, but the exit code is not 0.
void say_damage(const std::filesystem::path& trace, const std::string& damage);
// Prints on stderr what the figures lack although the trace is not damaged.
void say_missing(const std::filesystem::path& trace, const std::string& missing);
// Prints on stderr what the source of an imported trace did not contain.
void say_source(const analyze::Overview& overview);
bool damage_was_said();
// The same for a trace without an answer, if others have one. `counts`: the exit code becomes 2.
void say_failure(const std::string& message, bool counts = true);

// The error for a trace that can be read but has no events.
std::unexpected<Error> no_event(const std::filesystem::path& trace);

// The line above the answer of one process among several.
std::string head_of(const std::filesystem::path& trace);
// First line of an answer: bold, wrapped at the terminal's width; a leak or a failure in the color of alarms.
std::string headline(const std::string& text, bool alarm = false);
// Makes a sentence that contains names from a trace safe to print: nothing moves the cursor, and no word fills the screen.
std::string in_a_sentence(const std::string& text);
// "To do  <remedy>", empty for an empty remedy.
std::string to_do(const std::string& advice);
// Figure in the unit of the table's head.
std::string mib(analyze::Bytes bytes);
// How long a block has lived: "new", "33 µs", "4.5 ms", "5.0 s"
std::string age(std::uint64_t microseconds);
std::string dash(const std::string& text);  // "–" if it is empty
std::string share(analyze::Bytes part, analyze::Bytes whole);
// Last part of an op's path, and the kind of allocation unless it is the op's output.
std::string short_op(const std::string& op, const std::string& region = {});

}  // namespace vramscope::cli
