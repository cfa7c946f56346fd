// Answers as JSON, with the names of schema/answers. --json and the server produce the same.
#pragma once

#include <string>

#include "analyze/gen/answers_json.h"

namespace vramscope::analyze {

template <typename Answer>
std::string to_json(const Answer& answer, bool pretty = true) {
  support::JsonWriter json(pretty);
  write(json, answer);
  return json.text();
}

}  // namespace vramscope::analyze
