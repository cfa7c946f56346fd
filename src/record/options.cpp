#include "record/options.h"

#include <stdlib.h>
#include <string.h>

#include "record/recorder.h"
#include "spool/layout.h"

namespace vramscope::record {

namespace {

std::uint64_t number(const char* text, std::uint64_t otherwise) {
  if (text == nullptr || *text < '0' || *text > '9') return otherwise;
  std::uint64_t value = 0;
  for (; *text >= '0' && *text <= '9' && value < (std::uint64_t{1} << 50); ++text)
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return *text == '\0' ? value : otherwise;
}

bool has_word(const char* text, const char* word) {
  const std::size_t length = strlen(word);
  for (const char* at = strstr(text, word); at != nullptr; at = strstr(at + 1, word)) {
    const bool starts = at == text || at[-1] == ',';
    if (starts && (at[length] == '\0' || at[length] == ',')) return true;
  }
  return false;
}

}  // namespace

Options g_options;

void parse_options(const char* text) {
  if (text == nullptr) return;
  g_options.python_stacks = has_word(text, "stacks=python") || has_word(text, "stacks=both");
  g_options.native_stacks = has_word(text, "stacks=native") || has_word(text, "stacks=both");
  g_options.unwind_tables = has_word(text, "unwind=tables");
}

void read_environment() {
  remember_stderr();
  const char* folder = getenv(spool::kEnvSpool);
  const std::size_t length = folder != nullptr ? strlen(folder) : 0;
  if (length == 0 || length >= sizeof(g_options.spool_folder)) return;
  memcpy(g_options.spool_folder, folder, length + 1);
  g_options.spool_limit = number(getenv(spool::kEnvSpoolLimit), spool::kDefaultLimit);
  g_options.spool_leaves = number(getenv(spool::kEnvSpoolLeaves), 0);
  const char* clock = getenv(spool::kEnvClock);
  g_options.use_tsc = clock != nullptr && strcmp(clock, "tsc") == 0;
  parse_options(getenv(spool::kEnvOptions));
}

}  // namespace vramscope::record
