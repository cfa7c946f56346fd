// What the Python side reports about host memory: graphs that were built, stages of input pipelines, lines of Python.
#pragma once

#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze {

// By function and line, largest first; layers that were put together without a graph are one "function" per line. What an inner
// function added is not counted again in the one around it.
std::vector<HostGraph> built_graphs(const Store& store);

// In the order in which the program creates them.
std::vector<HostStage> pipeline_stages(const Store& store);

// Of the look that saw most, largest first.
std::vector<HostLine> python_lines(const Store& store);

}  // namespace vramscope::analyze
