// The requests and answers of the engine: plain data, independent of transport and formatting.
//
// The answers are described in schema/answers; their JSON (json.h) and its documentation are generated from there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/basics.h"
#include "analyze/gen/answers.h"
#include "analyze/requests.h"
#include "trace/gen/schema.h"

namespace vramscope::analyze {

// What the recording stored of a source file.
struct KeptSource {
  std::string path;                                          // in full, if the trace knows it
  std::optional<trace::SourceState> state;                   // none: the recording did not read this file
  std::vector<std::pair<std::uint64_t, std::string>> lines;  // number from 1, text; ascending
};

// A layer in a sentence: the parts of PyTorch's Sequential are identified by number only.
inline std::string layer_in_words(std::string_view name) {
  const bool number = !name.empty() && name.front() >= '0' && name.front() <= '9';
  return number ? "layer " + std::string(name) : std::string(name);
}

}  // namespace vramscope::analyze
