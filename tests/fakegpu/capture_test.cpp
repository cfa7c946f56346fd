// The driver level against a program that knows what it did.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "recording.h"

namespace fakegpu_test {
namespace {

using spool::RecordKind;

constexpr std::uint64_t kContextCost = (518u << 20) + (5u << 20) + 640 * 1024;  // as the fake driver charges it

struct Truth {
  std::uint64_t allocs, frees, peak, end, refused;
};

std::uint64_t number_after(const std::string& text, const std::string& key, std::size_t from) {
  const std::size_t at = text.find("\"" + key + "\": ", from);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + key.size() + 4, nullptr, 10);
}

Truth truth_of(const std::string& output, const std::string& kind) {
  const std::size_t at = output.find("\"" + kind + "\": {");
  EXPECT_NE(at, std::string::npos) << kind << " in " << output;
  return {number_after(output, "allocs", at), number_after(output, "frees", at), number_after(output, "peak", at),
          number_after(output, "end", at), number_after(output, "refused", at)};
}

void expect_equal(const Recording& recording, const std::string& kind, const std::string& pool_name, bool peak_too = true) {
  const Truth truth = truth_of(recording.output, kind);
  const PoolTotals* pool = recording.pool(pool_name);
  ASSERT_NE(pool, nullptr) << pool_name;
  EXPECT_EQ(pool->allocs, truth.allocs) << pool_name;
  EXPECT_EQ(pool->frees, truth.frees) << pool_name;
  EXPECT_EQ(pool->live, truth.end) << pool_name;
  if (peak_too) {
    EXPECT_EQ(pool->peak, truth.peak) << pool_name;
  }
}

std::string program_of(const std::string& way) { return way == "direct" ? "cuda_program_direct" : "cuda_program"; }

Recording run(const std::string& way, std::vector<std::string> arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), way);
  Recording recording = record(program_of(way), arguments, environment);
  EXPECT_EQ(recording.exit_code, 0);
  EXPECT_EQ(recording.contradiction(), "");
  EXPECT_EQ(recording.lost, 0u);
  return recording;
}

class EveryWay : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(CudaCapture, EveryWay, testing::Values("direct", "dlsym", "proc", "proc1", "default"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(EveryWay, LinearAndManagedMemory) {
  const Recording recording = run(GetParam(), {"linear"});
  expect_equal(recording, "linear", "CUDA:0 device memory");
  expect_equal(recording, "managed", "CUDA:0 managed");
  EXPECT_EQ(recording.pool("CUDA:0 managed")->memory, spool::Memory::managed);
}

TEST_P(EveryWay, StreamOrderedMemory) {
  const Recording recording = run(GetParam(), {"async"});
  expect_equal(recording, "default", "CUDA:0 default mempool");
  expect_equal(recording, "own", "CUDA:0 mempool 1");
  for (const Event& event : recording.of_kind(RecordKind::alloc)) EXPECT_NE(event.head.flags & spool::kFlagAsync, 0);
}

TEST_P(EveryWay, OldNamesPassUntouched) {
  const Recording recording = run(GetParam(), {"old"});
  EXPECT_TRUE(recording.of_kind(RecordKind::alloc).empty());
}

TEST_P(EveryWay, AProgramThatAllocatesNothingLeavesNothing) { EXPECT_EQ(run(GetParam(), {"nothing"}).spools, 0u); }

TEST_P(EveryWay, TheCallingProgramIsTheOwner) {
  for (const Event& event : run(GetParam(), {"linear"}).of_kind(RecordKind::alloc))
    EXPECT_EQ(event.owner, program_of(GetParam()));
}

TEST(CudaCapture, ReservedBytesOfAPoolFollowTheDriver) {
  const Recording recording = run("proc", {"async"});
  // 209 MiB at most in steps of 32 MiB; the other pool grew to 64 MiB, was trimmed to nothing and grew again.
  EXPECT_EQ(recording.pool("CUDA:0 default mempool")->region_peak, 224u << 20);
  EXPECT_EQ(recording.pool("CUDA:0 mempool 1")->region_peak, 64u << 20);
  EXPECT_EQ(recording.pool("CUDA:0 mempool 1")->region, 32u << 20);
}

TEST(CudaCapture, PhysicalMemoryLivesUntilHandleAndMappingsAreGone) {
  const Recording recording = run("dlsym", {"virtual"});
  expect_equal(recording, "physical", "CUDA:0 physical (VMM)");
  expect_equal(recording, "reserved", "CUDA reserved addresses");
  expect_equal(recording, "pinned", "CUDA pinned");
  EXPECT_EQ(recording.pool("CUDA reserved addresses")->memory, spool::Memory::virtual_only);
  EXPECT_EQ(recording.pool("CUDA reserved addresses")->region, 2u * (4 << 20));  // handle 2 and the imported one are still mapped
  const auto allocs = recording.of_kind(RecordKind::alloc);
  EXPECT_EQ(std::ranges::count_if(allocs, [](const Event& e) { return (e.head.flags & spool::kFlagImported) != 0; }), 1);
}

TEST_P(EveryWay, AMulticastObjectIsNotCounted) {
  const Recording recording = run(GetParam(), {"multicast"});
  expect_equal(recording, "physical", "CUDA:0 physical (VMM)");
  expect_equal(recording, "reserved", "CUDA reserved addresses");
  const Truth truth = truth_of(recording.output, "multicast");
  EXPECT_EQ(truth.frees, 1u);
  const PoolTotals* pool = recording.pool("CUDA imported");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->allocs, 0u);
  EXPECT_EQ(pool->live, 0u);
  const auto allocs = recording.of_kind(RecordKind::alloc);
  const auto object = std::ranges::find_if(allocs, [](const Event& e) { return (e.head.flags & spool::kFlagImported) != 0; });
  ASSERT_NE(object, allocs.end());
  EXPECT_EQ(object->bytes, truth.peak);
  EXPECT_EQ(object->owner, program_of(GetParam()));
  const auto frees = recording.of_kind(RecordKind::free);
  EXPECT_EQ(std::ranges::count(frees, object->address, &Event::address), 1);
}

// Neither without the function nor with an error. No memory of the device was asked for: its out-of-memory error is not one of
// these.
TEST(CudaCapture, AMulticastObjectThatIsRefusedIsNotRecorded) {
  for (const Environment& environment :
       {Environment{{"FAKEGPU_FAIL", "cuMulticastCreate:1:2"}}, Environment{{"FAKEGPU_FAIL", "cuMulticastCreate:1:801"}},
        Environment{{"FAKEGPU_DRIVER", "12000"}}}) {
    const Recording recording = run("proc", {"multicast"}, environment);
    EXPECT_EQ(truth_of(recording.output, "multicast").refused, 1u);
    expect_equal(recording, "physical", "CUDA:0 physical (VMM)");
    EXPECT_EQ(recording.of_kind(RecordKind::alloc).size(), 1u);
    EXPECT_TRUE(recording.of_kind(RecordKind::oom).empty());
  }
}

TEST(CudaCapture, PinnedMemory) {
  const Recording recording = run("dlsym", {"pinned"});
  expect_equal(recording, "pinned", "CUDA pinned");
  EXPECT_EQ(recording.pool("CUDA pinned")->memory, spool::Memory::pinned);
  EXPECT_EQ(recording.pool("CUDA pinned")->device, -1);
  EXPECT_EQ(recording.of_kind(RecordKind::free_cancelled).size(), 1u);
}

TEST(CudaCapture, ArraysAreSizedByTheirDescriptor) { expect_equal(run("dlsym", {"arrays"}), "array", "CUDA:0 arrays"); }

TEST(CudaCapture, RefusedCallsDidNotHappen) {
  const Environment failing{
      {"FAKEGPU_FAIL", "cuMemAlloc_v2:3:2,cuMemAlloc_v2:5:2,cuMemAlloc_v2:7:999,cuMemFree_v2:2:999,cuMemFree_v2:4:1"}};
  const Recording recording = run("proc", {"failures"}, failing);
  expect_equal(recording, "linear", "CUDA:0 device memory");
  EXPECT_EQ(truth_of(recording.output, "linear").refused, 3u);
  EXPECT_EQ(recording.of_kind(RecordKind::free_cancelled).size(), 2u);
  const auto ooms = recording.of_kind(RecordKind::oom);
  ASSERT_EQ(ooms.size(), 2u);  // the third refusal was another error
  EXPECT_EQ(ooms[0].requested, 1u << 20);
  EXPECT_NE(ooms[0].head.flags & spool::kFlagFinal, 0);
}

TEST(CudaCapture, AFullDeviceIsAnOom) {
  const Recording recording = run("dlsym", {"full"}, {{"FAKEGPU_MEMORY", "2147483648"}});
  expect_equal(recording, "linear", "CUDA:0 device memory");
  EXPECT_EQ(recording.pool("CUDA:0 device memory")->ooms, 1u);
}

TEST(CudaCapture, WhatIsInAContextGoesWithIt) {
  const Recording recording = run("dlsym", {"contexts"});
  expect_equal(recording, "linear", "CUDA:0 device memory");
  expect_equal(recording, "default", "CUDA:0 default mempool");
  expect_equal(recording, "pinned", "CUDA pinned");
  const auto contexts = recording.of_kind(RecordKind::context);
  ASSERT_EQ(contexts.size(), 5u);  // two made, the primary one three times
  EXPECT_EQ(contexts[0].bytes, (8ull << 30) - kContextCost);
}

TEST(CudaCapture, AContextMadeBehindOurBackIsMeasuredBeforeTheFirstAllocation) {
  const Recording recording = run("dlsym", {"behind"});
  const auto contexts = recording.of_kind(RecordKind::context);
  ASSERT_EQ(contexts.size(), 1u);
  EXPECT_EQ(contexts[0].bytes, (8ull << 30) - kContextCost);
}

TEST(CudaCapture, AMeasurementThatFailsIsNotMissed) {
  const Recording recording = run("dlsym", {"linear"}, {{"FAKEGPU_FAIL", "cuMemGetInfo_v2:1+:999,cuCtxGetDevice:1:201"}});
  EXPECT_TRUE(recording.of_kind(RecordKind::context).empty());
}

TEST(CudaCapture, EachDeviceHasItsPools) {
  const Recording recording = run("proc", {"devices"}, {{"FAKEGPU_DEVICES", "3"}});
  for (const char* device : {"0", "1", "2"})
    expect_equal(recording, std::string("linear") + device, std::string("CUDA:") + device + " device memory");
  expect_equal(recording, "physical", "CUDA:2 physical (VMM)");
  EXPECT_EQ(recording.of_kind(RecordKind::context).size(), 3u);
}

TEST(CudaCapture, MemoryOfOthersIsNotCounted) {
  const Recording recording = run("dlsym", {"ipc"});
  EXPECT_EQ(recording.pool("CUDA:0 imported")->allocs, 0u);
  EXPECT_EQ(recording.pool("CUDA:0 imported")->live, 0u);
  const auto allocs = recording.of_kind(RecordKind::alloc);
  EXPECT_EQ(std::ranges::count_if(allocs, [](const Event& e) { return (e.head.flags & spool::kFlagImported) != 0; }), 2);
}

TEST(CudaCapture, GraphsKeepTheirMemoryApart) {
  const Recording recording = run("proc", {"graphs"});
  expect_equal(recording, "linear", "CUDA:0 device memory");
  EXPECT_EQ(recording.of_kind(RecordKind::alloc).size(), 1u);
  EXPECT_EQ(recording.pool("CUDA:0 graph memory")->region_peak, 96u << 20);
  EXPECT_EQ(recording.pool("CUDA:0 graph memory")->region, 0u);
}

TEST(CudaCapture, ADriverThatCallsItselfIsCountedOnce) {
  expect_equal(run("dlsym", {"linear"}, {{"FAKEGPU_NESTED", "1"}}), "linear", "CUDA:0 device memory");
}

TEST(CudaCapture, AReusedAddressIsNeverAliveTwice) {
  const Recording recording = run("proc", {"threads", "8", "4000"}, {{"FAKEGPU_REUSE", "1"}});
  expect_equal(recording, "linear", "CUDA:0 device memory", false);
  expect_equal(recording, "default", "CUDA:0 default mempool", false);
  std::set<std::uint32_t> threads;
  std::set<std::uint64_t> addresses;
  const auto allocs = recording.of_kind(RecordKind::alloc);
  for (const Event& event : allocs) {
    threads.insert(event.thread);
    addresses.insert(event.address);
  }
  EXPECT_EQ(threads.size(), 8u);
  EXPECT_LT(addresses.size() * 100, allocs.size()) << "the test did not provoke reuse";
}

// Each library takes one block itself and one through the shared runtime, behind which it must be found.
TEST(CudaCapture, OwnersAreTheLibrariesThatAllocate) {
  std::map<std::string, std::vector<std::uint64_t>> by_owner;
  for (const Event& event : run("dlsym", {"owners"}).of_kind(RecordKind::alloc)) by_owner[event.owner].push_back(event.bytes);
  const auto both = [](std::uint64_t n) { return std::vector<std::uint64_t>{n << 20, n << 10}; };
  EXPECT_EQ(by_owner["NCCL"], both(1));
  EXPECT_EQ(by_owner["cuBLAS"], both(2));
  EXPECT_EQ(by_owner["TensorFlow"], both(3));
  EXPECT_EQ(by_owner["PyTorch"], both(4));
  EXPECT_EQ(by_owner["libstrangers_library.so"], both(5));
  EXPECT_EQ(by_owner.size(), 5u);
}

TEST(CudaCapture, AForkedChildRecordsItsOwn) {
  const Recording parent = run("dlsym", {"fork"});
  expect_equal(parent, "linear", "CUDA:0 device memory");
  ASSERT_EQ(parent.children.size(), 1u);
  const Recording& child = parent.children[0];
  EXPECT_EQ(child.contradiction(), "");
  const PoolTotals* pool = child.pool("CUDA:0 device memory");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->allocs, 2u);
  EXPECT_EQ(pool->frees, 1u);
  EXPECT_EQ(pool->live, 3u << 20);
  ASSERT_NE(child.pool("CUDA:0 default mempool"), nullptr);
  EXPECT_EQ(child.pool("CUDA:0 default mempool")->region, 64u << 20);  // what the driver says, not what the parent recorded
  for (const Event& event : child.of_kind(RecordKind::alloc)) EXPECT_EQ(event.owner, "cuda_program");
}

TEST(CudaCapture, LateAttachReachesPointersThatLibrariesKeep) {
  for (const char* way : {"direct", "dlsym", "proc"}) {
    const Environment late{{"LATE_LIBRARY", std::string(VS_BUILD_DIR) + "/libvramscope_inject.so"}};
    const Recording recording = record(program_of(way), {way, "late"}, late, false);
    ASSERT_EQ(recording.exit_code, 0) << way;
    EXPECT_EQ(recording.contradiction(), "") << way;
    expect_equal(recording, "linear", "CUDA:0 device memory");
    std::map<std::string, std::uint64_t> by_owner;
    for (const Event& event : recording.of_kind(RecordKind::alloc)) by_owner[event.owner] += event.bytes;
    EXPECT_EQ(by_owner["NCCL"], 7u << 20) << way;
    EXPECT_EQ(by_owner[program_of(way)], 8u << 20) << way;
  }
}

TEST(CudaCapture, LookupsAreAsWithoutTheLibrary) {
  const Recording plain = record("next_main", {}, {}, false);
  const Recording injected = record("next_main", {});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_NE(plain.output.find("next 107 109"), std::string::npos) << plain.output;
  EXPECT_EQ(injected.exit_code, 0);
  EXPECT_EQ(injected.output, plain.output);
  EXPECT_EQ(injected.spools, 0u);
}

TEST(CudaCapture, WithoutADriverNothingHappens) {
  const Recording recording = record("cuda_program", {"dlsym", "linear"}, {{"LD_LIBRARY_PATH", "/nonexistent"}});
  EXPECT_EQ(recording.exit_code, 4);  // the program says that there is no driver
  EXPECT_EQ(recording.spools, 0u);
}

}  // namespace
}  // namespace fakegpu_test
