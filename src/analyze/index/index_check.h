// Whether an index can belong to a trace: every reference in it must point to something that exists.
//
// The checksums already prove that we wrote the file. This is the second line of defense: whatever the file contains, using it
// is safe.
#pragma once

#include "analyze/index/index_file.h"
#include "trace/reader.h"

namespace vramscope::analyze {

// Tables, and the lengths of columns.
bool makes_sense(const Index& index, const trace::Reader& trace);

// For the values of the columns, which are unpacked later.
struct ColumnChecks {
  ColumnCheck<std::uint32_t> event, alloc, kind, ref, attributes;
};
ColumnChecks column_checks(const Index& index);

}  // namespace vramscope::analyze
