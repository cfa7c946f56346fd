// Starts the Python side (python/vramscope/_startup) in a way that no interpreter option and no script can prevent: `-I`, `-E`
// and a changed PYTHONPATH hide the startup folder, and `-S` skips the module that runs it.
//
// Before main, one module is added to the interpreter's table of built-in modules: `sitecustomize`. Python imports it at the end
// of its startup, in the main thread, with its lock held, and it runs the file of that name in the startup folder. If that does
// not happen, the first block of a framework requests a call in the interpreter's main thread.
#pragma once

#include "capture/framework.h"

namespace vramscope::capture::python {

// Called by the library's constructor, after the environment was read.
void prepare();

// A pool of this framework was created. Records whether the Python side watches the framework, and starts the Python side if not.
void framework_seen(const Framework& framework);

// The Python side has installed its hooks in this framework.
void framework_watched(const Framework& framework);

}  // namespace vramscope::capture::python
