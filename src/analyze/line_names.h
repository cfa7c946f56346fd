// Lines of source as people read them: "train.py:13", with as many folders in front as tell two files of one name apart.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>

#include "trace/gen/schema.h"
#include "trace/reader.h"

namespace vramscope::analyze {

class LineNames {
 public:
  explicit LineNames(const trace::Dictionaries& words);

  std::string of(trace::StringId file, std::uint64_t line) const;
  // The innermost frame that the user wrote, in a file if there is one; the innermost of all where there is none.
  std::string of_stack(std::size_t stack) const;

 private:
  const trace::Dictionaries& words_;
  tsl::robin_map<std::size_t, std::string> files_;  // by string id
};

}  // namespace vramscope::analyze
