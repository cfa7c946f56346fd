// Environment variables that explain memory use. Only those on the list are ever recorded.
#pragma once

namespace vramscope::record {

void record_environment();

}  // namespace vramscope::record
