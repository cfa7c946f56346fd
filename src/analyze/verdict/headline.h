// What the reader should know first, decided in one place: how bad a finding is, which findings are shown and in which order, and
// the one sentence about a run. It works only on values that are passed in, so that no answer has to ask for another one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answers.h"

namespace vramscope::analyze {

// Worst first.
enum class Severity { died, out_of_memory, leak, fault, saving };
// By its id; a finding that is not in the table is a saving.
Severity severity_of(std::string_view finding_id);

inline constexpr Bytes kUseful = 1u << 20;
// A saving that is worth reading about: at least kUseful and 1 % of the peak.
bool is_useful(Bytes saving, Bytes peak);

// How the process ended, as far as the recording knows.
struct Ending {
  std::optional<std::int64_t> signal = {}, exit_code = {};
  std::int64_t step = 0;     // the last step; 0 = there is none
  bool inside_step = false;  // the process ended before that step did
};
// "was killed by SIGKILL in step 41", "exited with code 1 after step 9"; empty if it ended normally, was stopped from the
// keyboard, or if nothing is known.
std::string ending_words(const Ending& ending);

// The findings to show, worst first and then by what they save. An ending that was not normal becomes part of the title that
// explains it, or a finding of its own.
std::vector<Finding> ranked(std::vector<Finding> findings, const Ending& ending, Bytes peak);

// The sentence about a run. `need` is what to say if nothing is wrong; `findings` are ranked.
std::string headline(std::string_view need, std::span<const Finding> findings, Bytes peak);

}  // namespace vramscope::analyze
