// The functions behind the tables. Used by tables.cpp alone.
#pragma once

#include "exporters/tables.h"

namespace vramscope::exporters {

Table blocks_table();
Table events_table();
Table steps_table();
Table places_table();
Table samples_table();
Table ooms_table();
Table findings_table();
Table ledger_table();
Table stacks_table();
Table settings_table();

}  // namespace vramscope::exporters
