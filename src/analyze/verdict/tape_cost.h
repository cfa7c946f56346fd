// What persistent tapes cost: the blocks that are freed when one of them dies.
#pragma once

#include <map>
#include <string>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// The most that a tape of each line ("train.py:31") kept until it died. Tapes that outlive the recording are not in it.
std::map<std::string, Bytes> kept_by_tapes(const Store& store);

}  // namespace vramscope::analyze
