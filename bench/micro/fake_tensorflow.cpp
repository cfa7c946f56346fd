#include "bench/micro/fake_tensorflow.h"

namespace tsl {

void* BFCAllocator::AllocateRaw(unsigned long /*alignment*/, unsigned long bytes, const AllocationAttributes& /*attributes*/) {
  void* block = FindChunkPtr(0, kBlock, bytes, 0);
  AddTraceMe("MemoryAllocation", block, static_cast<long>(bytes), static_cast<long>(kBlock));
  return block;
}

void BFCAllocator::DeallocateRaw(void* block) {
  MarkFree(1);
  AddTraceMe("MemoryDeallocation", block, 1, static_cast<long>(kBlock));
}

void* BFCAllocator::FindChunkPtr(int /*bin*/, unsigned long /*rounded*/, unsigned long /*bytes*/, unsigned long /*before*/) {
  next_ = (next_ + 1) % kBlocks;
  return memory_ + next_ * kBlock;
}

std::string BFCAllocator::Name() { return "GPU_0_bfc"; }
unsigned long BFCAllocator::AllocatedSize(const void* /*block*/) const { return kBlock; }
AllocatorStats BFCAllocator::GetStats() { return {}; }
int BFCAllocator::GetMemoryType() const { return 1; }
void BFCAllocator::MarkFree(unsigned long /*chunk*/) {}
void BFCAllocator::AddTraceMe(std::string_view /*name*/, const void* /*block*/, long /*requested*/, long /*granted*/) {}

profiler::MemoryDebugAnnotation& profiler::ScopedMemoryDebugAnnotation::ThreadMemoryDebugAnnotation() {
  thread_local MemoryDebugAnnotation annotation;
  return annotation;
}

}  // namespace tsl
