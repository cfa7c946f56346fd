// Writes the sample traces of the format's current version: every dictionary, every kind of event, several chunks.
//   make_sample FILE [--steps N] [--limit BYTES] [--anonymize]
// The committed ones are never written again: they are what each version looked like. A new version gets new files.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "trace/writer.h"

namespace {

using namespace vramscope::trace;

class Sample {
 public:
  Sample(Writer& writer, std::int64_t steps) : w_(writer), steps_(steps) {}

  vramscope::Status write() {
    names();
    beginning();
    for (std::int64_t step = 1; step <= steps_; ++step) {
      train(step);
      if (step % 5 == 0) {
        if (auto status = w_.flush(); !status) return status;
      }
    }
    end();
    return w_.finish();
  }

 private:
  At at() {
    ++seq_;
    return {seq_, seq_ * 7 + seq_ % 5, threads_[seq_ % 3 == 0]};
  }
  StringId s(std::string_view text) { return w_.string(text); }

  void names() {
    threads_[0] = w_.thread({100, s("main")});
    threads_[1] = w_.thread({101, s("tf_Compute")});
    bfc_ = w_.pool({s("GPU_0_bfc"), 0, Level::tensor, Memory::device, Framework::tensorflow});
    driver_ = w_.pool({s("cuMemAlloc"), 0, Level::driver, Memory::device, Framework::cuda});
    pinned_ = w_.pool({s("cuMemHostAlloc"), -1, Level::driver, Memory::pinned, Framework::cuda});
    const FrameId fit = w_.frame({s("fit"), s("train.py"), 42, 0, {}});
    const FrameId call = w_.frame({s("call"), s("model.py"), 17, 0, {}});
    const FrameId native = w_.frame({{}, s("libtensorflow_cc.so.2"), 0, 0x1234560, s("00c0ffee00c0ffee")});
    const StackId stack = w_.stack(0x0123456789abcdef, std::vector{native, call, fit}, 745);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::string op = fmt::format("model/dense_{}/{}", i / 4, i % 2 == 0 ? "MatMul" : "BiasAdd");
      sites_.push_back(w_.site({bfc_,
                                1000 + 412 * i,
                                s(op),
                                s(i % 3 == 0 ? "temp" : "output"),
                                1 + i % 2,
                                s(fmt::format("[{},{}]", i + 1, 25)),
                                i % 5 == 0 ? stack : StackId{},
                                0,
                                {},
                                0}));
      w_.op_source({s(op), s("model.py"), 17 + i, s("call"), s(fmt::format("dense_{}", i / 4))});
      w_.source_line({s("model.py"), 17 + i, s(fmt::format("    x = dense_{}(x)", i))});
    }
    w_.source_file({s("model.py"), SourceState::kept, 1'700'000'000'000'000});
    direct_ = w_.site({.pool = driver_, .requested = 1 << 20, .stream = 0x5555, .owner = s("libnccl.so.2"), .flags = 1});
    host_ = w_.site({.pool = pinned_, .requested = 65536, .owner = s("libcudart.so.12")});
  }

  void beginning() {
    w_.append(at(), Setting{s("process.command"), s("python train.py")});
    w_.append(at(), Setting{s("tensorflow.version"), s("2.21.0")});
    // What names may hold: control characters, quotes, text that is not UTF-8, long text.
    w_.append(at(), Setting{s("hostile"), s(std::string("a\nb\0c\"\\\x1b\xff\xc3 \xe2\x82\xac", 14) + std::string(2000, 'x'))});
    w_.append(at(), Context{0, 400 << 20, std::uint64_t{20} << 30, std::uint64_t{24} << 30});
    w_.append(at(), Region{bfc_, 0x7f0000000000, std::uint64_t{1} << 30, false});
    w_.alloc(at(), {direct_, 0x7e0000000000, 2 << 20, 0});
    w_.alloc(at(), {host_, 0x7d0000000000, 65536, 0});
    w_.free(at(), bfc_, 0x7f0000000100, 0);  // of an allocation that was not recorded
    for (std::uint64_t i = 0; i < 8; ++i) {
      const std::uint64_t address = 0x7f0000100000 + i * 0x4000;
      w_.alloc(at(), {sites_[i], address, 16384, 0});
      w_.append(at(), Tag{address, 16384, i % 2 == 0 ? Category::parameter : Category::optimizer_state,
                          s(fmt::format("dense_{}/kernel", i)), s("dense")});
    }
  }

  void train(std::int64_t step) {
    w_.append(at(), Mark{MarkKind::step, MarkEdge::begin, s("train"), step, {}});
    std::vector<std::uint64_t> live;
    for (std::uint64_t i = 8; i < sites_.size(); ++i) {
      const std::uint64_t address = 0x7f0000200000 + ((i * 37 + static_cast<std::uint64_t>(step % 2)) % 64) * 0x8000;
      const std::uint64_t granted = (1000 + 412 * i + 255) / 256 * 256 + (i % 9 == 0 ? 512 : 0);
      w_.append(at(), Mark{MarkKind::layer, MarkEdge::begin, s("dense"), -1, s("model.py:17")});
      w_.alloc(at(), {sites_[i], address, granted, step * 7919});
      w_.append(at(), Mark{MarkKind::layer, MarkEdge::end, s("dense"), -1, {}});
      live.push_back(address);
      if (i % 3 == 0 && !(step == 11 && i > 20)) {
        w_.free(at(), bfc_, live.front(), 0);
        live.erase(live.begin());
      }
    }
    for (auto address = live.rbegin(); address != live.rend(); ++address) w_.free(at(), bfc_, *address, 0x5555);
    w_.append(at(), DeviceSample{0, (std::uint64_t{2} << 30) + static_cast<std::uint64_t>(step), 22 << 20,
                                 std::uint64_t{24} << 30, 0, kNone, 5});
    w_.append(at(), HostSample{static_cast<std::uint64_t>(step) * 4096, 65536});
    w_.append(at(), Mark{MarkKind::step, MarkEdge::end, s("train"), step, {}});
  }

  void end() {
    w_.append(at(), Oom{sites_[39], 5, true, 123456, std::uint64_t{1} << 30, 4096, std::uint64_t{1} << 30});
    w_.append(at(), Stats{bfc_, 968, 131072, 400000, 17920, std::uint64_t{1} << 30, std::uint64_t{1} << 30});
    w_.append(at(), Totals{bfc_, 968, 960, 131072, 400000, 17920, std::uint64_t{1} << 30, 1, true, 0});
    w_.append(at(), Lost{LossKind::gap, 3});
    reports();
    w_.append(at(), Region{bfc_, 0x7f0000000000, std::uint64_t{1} << 30, true});
  }

  void reports() {
    const StringId file = s("/data/Größe.py");
    w_.append(at(), VariableOp{s("gradient_tape/MatMul"), OpRole::gradient, Category::gradient, s("dense_0/kernel")});
    w_.append(at(), VariableOp{s("adam/AssignAddVariableOp"), OpRole::storage, Category::optimizer_state, s("größe")});
    w_.append(at(), VariableOp{s("mul"), OpRole::value, Category::parameter, s("dense_0/kernel")});
    w_.append(at(), HeldTensors{s("verläufe"), s("list"), s("global of __main__ (Größe.py)"), file, 31, 9, 9 << 20, 1250});
    w_.append(at(), PersistentTape{file, 45, 10});
    w_.append(at(), Retrace{s("überholt"), s("n: Literal[8] -> n: Literal[9]"), file, 17, 10});
    w_.append(at(), BakedConstant{s("GatherV2/params"), s("nachschlagen"), s("(600, 600)"), s("float32"), file, 14, 1440000, 2});
    w_.append(at(), Float64Variable{s("größe"), file, 6, 131072});
    w_.append(at(), DatasetOnDevice{s("GPU:0"), file, 37, 8 << 20});
    w_.append(at(), CachedDataset{file, 38, 8 << 20, 128});
    w_.append(at(), TracedGraph{s("überholt"), file, 17, 1, 96, 500 << 20, 524 << 20});
    w_.append(at(), DatasetStage{s("ShuffleDatasetV3"), file, 39, 2, 1000, 8 << 20});
    w_.append(at(), StageBuffer{s("ShuffleDatasetV3"), 2, 640, 5 << 20});
    w_.append(at(), Float64Enters{file, 7, 131072});
    w_.append(at(), HostLine{s("numpy"), file, 12, 3, 24 << 20, 2});
    w_.append(at(), PoolLimit{0, std::uint64_t{1} << 30});
    w_.append(at(), BuiltLayers{file, 21, 12, 3 << 20});
    w_.append(at(), ProgramPlan{s("jit_größe"), file, 22, 4 << 20, 3 << 20, 2 << 20, 1 << 20});
    w_.append(at(), StateNotDonated{s("jit_größe"), s("zustand"), file, 22, 3 << 20});
    w_.append(at(), DonationFailed{s("jit_größe"), s("[0]['größe']"), s("no result has its shape"), file, 22, 1 << 20});
    w_.append(at(), ReplicatedArguments{s("jit_größe"), s("[0]['größe']"), Category::parameter, file, 22, 1 << 20, 4, 2 << 20});
  }

  Writer& w_;
  std::int64_t steps_;
  ThreadId threads_[2]{};
  PoolId bfc_{};
  PoolId driver_{};
  PoolId pinned_{};
  std::vector<SiteId> sites_;
  SiteId direct_{};
  SiteId host_{};
  std::uint64_t seq_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  WriterOptions options{.start_realtime_us = 1'700'000'000'000'000};
  std::int64_t steps = 30;
  for (int i = 2; i < argc; ++i) {
    if (argv[i] == std::string_view("--steps") && i + 1 < argc) steps = std::atoi(argv[++i]);
    if (argv[i] == std::string_view("--anonymize")) options.anonymize = random_key();
    if (argv[i] == std::string_view("--limit") && i + 1 < argc) options.limit_bytes = std::strtoull(argv[++i], nullptr, 10);
  }
  auto writer = Writer::create(argv[1], options);
  const vramscope::Status status = writer ? Sample(*writer, steps).write() : std::unexpected(writer.error());
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 2;
}
