// Forecasts from recordings at two batch sizes, of a program whose memory is known at any other.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "trace_test.h"

namespace vramscope::test {
namespace {

using namespace analyze;
using tracegen::Handle;
using tracegen::Maker;

constexpr std::uint64_t kWeights = 8 * kMiB, kPerSample = 1u << 16;
constexpr std::uint64_t live_at(std::uint64_t batch) { return kWeights + 2 * batch * kPerSample; }

void record(const TracePath& path, std::uint64_t batch, const std::string& file) {
  Maker m = Maker::create(path, {}).value();
  m.tag(m.alloc({"dense/kernel", "output", kWeights}).value(), trace::Category::parameter, "kernel", "dense");
  for (int s = 1; s <= 4; ++s) {
    m.mark(trace::MarkKind::step, trace::MarkEdge::begin, "train", s);
    std::vector<Handle> made;
    for (const std::uint64_t line : {939u, 947u})
      made.push_back(m.alloc({.op = "dense/call", .bytes = batch * kPerSample, .file = file, .line = line + batch}).value());
    for (const Handle& block : made) m.free(block);
    m.mark(trace::MarkKind::step, trace::MarkEdge::end, "train", s);
  }
  ASSERT_TRUE(m.finish());
}

Bytes forecast(const std::string& small_file, const std::string& large_file) {
  const TracePath small, large;
  record(small, 64, small_file);
  record(large, 128, large_file);
  const Engine of_small = opened(small), of_large = opened(large);
  const std::array<const Engine*, 2> runs{&of_small, &of_large};
  const std::array<std::string, 2> names{"small", "large"};
  FitRequest request;
  request.batch = 512;
  request.batches = {64, 128};
  const Result<Fit> found = fit(runs, names, request);
  if (!found) return 0;  // "nothing grows"
  EXPECT_LE(found->error, 0.01);
  return found->rows.back().live;
}

// TorchInductor writes another file for each batch size.
TEST(Fit, FindsThePlacesOfCompiledCodeAgain) {
  EXPECT_EQ(forecast("/tmp/torchinductor_root/bs/cbs5m2qxqtfga6i6lioeayxk7ghvj6khjybjcynvik665knehvgw.py",
                     "/tmp/torchinductor_root/22/c222nvwl44xod3un23zgx5tphu6636l57qoxi3wca4rwafj2w7df.py"),
            live_at(512));
}

TEST(Fit, DoesNotTakeOtherFilesForTheSame) { EXPECT_NE(forecast("/srv/a.py", "/srv/b.py"), live_at(512)); }

}  // namespace
}  // namespace vramscope::test
