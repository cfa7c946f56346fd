// Graphs allocate when they are launched and keep the memory afterwards. Single nodes are not recorded; what the device holds
// for graphs is read occasionally.
#include "capture/cuda/driver.h"
#include "capture/cuda/events.h"
#include "capture/cuda/place.h"

using namespace vramscope::capture::cuda;

namespace {

template <typename Forward>
CUresult launching(Forward forward) {
  const CUresult result = forward();
  if (result == kSuccess && any_graph_memory() && recording()) sample_graph_memory(current_place().device, false);
  return result;
}

void note_node(CUresult result, const CUgraphNodeParams* params) {
  if (result == kSuccess && params != nullptr && params->type == kGraphNodeMemAlloc && recording())
    graphs_allocate(current_place().device);
}

}  // namespace

extern "C" {

CUresult vs_cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                   CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  const CUresult result = VS_REAL(cuGraphAddMemAllocNode)(out, graph, dependencies, count, params);
  if (result == kSuccess && params != nullptr && recording()) graphs_allocate(params->pool_props.location.id);
  return result;
}

CUresult vs_cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                           CUgraphNodeParams* params) {
  const CUresult result = VS_REAL(cuGraphAddNode)(out, graph, dependencies, count, params);
  note_node(result, params);
  return result;
}

CUresult vs_cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const void* edges,
                              std::size_t count, CUgraphNodeParams* params) {
  const CUresult result = VS_REAL(cuGraphAddNode_v2)(out, graph, dependencies, edges, count, params);
  note_node(result, params);
  return result;
}

CUresult vs_cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launching([=] { return VS_REAL(cuGraphLaunch)(graph, stream); });
}

CUresult vs_cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launching([=] { return VS_REAL(cuGraphLaunch_ptsz)(graph, stream); });
}

CUresult vs_cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult result = VS_REAL(cuDeviceGraphMemTrim)(device);
  if (result == kSuccess && any_graph_memory() && recording()) sample_graph_memory(device, true);
  return result;
}
}
