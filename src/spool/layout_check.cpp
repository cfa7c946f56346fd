// Compiles the layout on its own, so that its static_asserts are checked even if nothing uses them.
#include "spool/layout.h"
static_assert(sizeof(vramscope::spool::AllocRecord) == 64 && sizeof(vramscope::spool::MarkRecord) == 64 &&
              sizeof(vramscope::spool::TagRecord) == 64 && sizeof(vramscope::spool::RegionRecord) == 64 &&
              sizeof(vramscope::spool::StatsRecord) == 96 && sizeof(vramscope::spool::SettingRecord) == 32 &&
              sizeof(vramscope::spool::ContextRecord) == 64 && sizeof(vramscope::spool::StringRecord) == 32);
