// The text next to the bytes of a source file: what the trace contains, or a file under the folder that the user named. No
// other file is opened, whatever the trace says, because it may come from anyone.
#pragma once

#include "analyze/api.h"
#include "serve/gen/rpc.h"
#include "support/plain_file.h"

namespace vramscope::serve {

// Sets path, text, status and remedy. `root` may be NULL.
void fill_source_text(SourceText& out, const analyze::Engine& engine, const analyze::Overview& overview,
                      const support::SourceRoot* root);

}  // namespace vramscope::serve
