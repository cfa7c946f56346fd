#include "training.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <random>

namespace vramscope::tracegen {
namespace {

constexpr std::uint64_t kContext = 512u << 20;  // what CUDA takes beside the pool

using trace::MarkEdge;
using trace::MarkKind;

class Run {
 public:
  Run(Maker maker, const Training& program) : maker_(std::move(maker)), p_(program), random_(program.seed) {}

  Result<Truth> go() {
    if (p_.maker.framework == trace::Framework::pytorch)
      maker_.setting("torch.version", "2.9.0");
    else
      maker_.setting("tensorflow.version", "2.21.0");
    if (p_.rank >= 0) maker_.setting("rank", std::to_string(p_.rank));
    if (p_.signal > 0) maker_.setting("process.signal", std::to_string(p_.signal));
    phase(MarkEdge::begin, "build");
    for (int d = 0; d < p_.devices; ++d)
      for (int l = 0; l < p_.layers; ++l) {
        auto w = get({op("", l, "kernel/Initializer/RandomUniform"), "output", p_.weight_bytes, d, 1, "[256,256]"});
        if (!w) return done();
        weights_.push_back(*w);
        if (p_.tags) maker_.tag(*w, trace::Category::parameter, layer(l) + "/kernel", layer(l));
      }
    phase(MarkEdge::end, "build");
    for (std::int64_t s = 1; s <= p_.steps; ++s) {
      if (!step(s)) return done();
      if (p_.evaluate_every > 0 && s % p_.evaluate_every == 0 && !evaluate()) return done();
    }
    return done();
  }

 private:
  std::string layer(int l) const {
    const std::string number = std::to_string(l);
    constexpr const char* kParts[] = {"query", "key", "value", "output"};
    if (p_.nested) return "encoder/layer_" + std::to_string(l / 4) + "/" + kParts[l % 4];
    return p_.names.empty() ? "dense_" + number : p_.names[static_cast<std::size_t>(l) % p_.names.size()] + number;
  }
  std::string file(int l) const { return p_.names.empty() ? "train.py" : layer(l); }
  std::string op(const std::string& scope, int l, const std::string& type) const {
    if (p_.eager) return type.substr(type.rfind('/') + 1);
    if (p_.nested) return layer(l) + "/" + type.substr(type.rfind('/') + 1);  // as PyTorch's modules name them
    return call() + scope + "sequential/" + layer(l) + "/" + type;
  }
  std::string call() const {
    return p_.in_loop ? "while/body/_1/while/cond/then/_119/while/cond/StatefulPartitionedCall/" : "StatefulPartitionedCall/";
  }
  std::string adam(const std::string& type) const { return p_.eager || p_.eager_update ? type : call() + "adam/" + type; }
  void phase(MarkEdge edge, const std::string& name) {
    if (p_.marks) maker_.mark(MarkKind::phase, edge, name);
  }

  std::optional<Handle> get(const Want& want) {
    auto out = maker_.alloc(want);
    if (!out) truth_.out_of_memory = true;
    step_peak_ = std::max(step_peak_, maker_.pool(0).live());
    return out;
  }
  bool brief(const Want& want) {
    auto block = get(want);
    if (block) maker_.free(*block);
    return block.has_value();
  }

  bool small(const std::string& scope, int l, int d) {
    for (int i = 0; i < p_.small_blocks; ++i)
      if (!brief({op(scope, l, "Mul_" + std::to_string(i)), "temp", 1024u << (i % 8), d})) return false;
    return true;
  }

  // Hostile names come with steps that all claim to be the same one.
  std::int64_t number_of(std::int64_t s) const { return p_.names.empty() ? s - 1 : 7; }

  bool step(std::int64_t s) {
    if (p_.marks) maker_.mark(MarkKind::step, p_.instants ? MarkEdge::instant : MarkEdge::begin, "train", number_of(s));
    step_peak_ = maker_.pool(0).live();
    double scale = p_.variable_shapes ? std::uniform_real_distribution(0.5, 1.5)(random_) : 1.0;
    auto bytes = static_cast<std::uint64_t>(static_cast<double>(p_.layer_bytes) * scale) / 256 * 256;
    bool ok = true;
    for (int d = 0; ok && d < p_.devices; ++d) ok = pass(s, d, bytes);
    if (ok) ok = keep(s);
    if (!ok) return false;
    if (p_.marks && !p_.instants) maker_.mark(MarkKind::step, MarkEdge::end, "train", number_of(s));
    truth_.step_peak.push_back(step_peak_);
    truth_.left_after.push_back(maker_.pool(0).live());
    if (s > 1) truth_.steady_peak = std::max(truth_.steady_peak, step_peak_);
    maker_.wait(200);
    return true;
  }

  bool pass(std::int64_t s, int d, std::uint64_t bytes) {
    if (p_.in_loop && (s <= 2 || s == p_.steps - 1))
      for (const char* type : {"range", "add", "mod"})
        if (!brief({std::string("gradient_tape/compile_loss/mse/") + type, "output", 64, d})) return false;
    auto input = get({"SameWorkerRecvDone", "dynamic", bytes / 2 + 256, d, 1, "[32,64]"});
    if (!input) return false;
    std::vector<Handle> kept;
    for (int l = 0; l < p_.layers; ++l) {
      if (!small("", l, d)) return false;
      if (p_.xla_bytes > 0 && !brief({op("", l, "XlaLaunch"), "temp", p_.xla_bytes, d})) return false;
      if (s == 1 && p_.autotune_bytes > 0 && !brief({op("", l, "Conv2D"), "", p_.autotune_bytes, d, 0})) return false;
      auto a = get({op("", l, "Relu"), "output", bytes, d, 1, "[32,64]", file(l), static_cast<std::uint64_t>(10 + l)});
      if (!a) return false;
      kept.push_back(*a);
    }
    if (!p_.trains) {
      for (const Handle& a : kept) maker_.free(a);
      maker_.free(*input);
      return true;
    }
    std::optional<Handle> gradient;
    std::vector<Handle> weight_gradients;
    for (int l = p_.layers; l-- > 0;) {
      if (!small("gradient_tape/", l, d)) return false;
      auto g = get({op("gradient_tape/", l, "ReluGrad"), "output", bytes, d});
      auto w = g ? get({op("gradient_tape/", l, "MatMul/MatMul_1"), "output", p_.weight_bytes, d}) : std::nullopt;
      if (!w) return false;
      if (gradient) maker_.free(*gradient);
      gradient = g;
      weight_gradients.push_back(*w);
      maker_.free(kept.back());
      kept.pop_back();
    }
    maker_.free(*gradient);
    for (Handle& w : weight_gradients) {
      if (s == 1) {  // slots are made at the first update and stay
        auto slot = get({adam("Fill"), "persist", p_.weight_bytes, d});
        if (!slot) return false;
        weights_.push_back(*slot);
        if (p_.tags) maker_.tag(*slot, trace::Category::optimizer_state, "adam/m", "");
      }
      if (!update(s, d)) return false;
      maker_.free(w);
    }
    maker_.free(*input);
    return true;
  }

  bool update(std::int64_t s, int d) {
    if (p_.eager_update && s % p_.update_every == 0) {
      for (int l = 0; l < p_.layers; ++l)
        for (const char* type : {"Sqrt", "Square", "Mul"})
          if (!brief({adam(type), "output", p_.weight_bytes, d})) return false;
      return true;
    }
    if (p_.update_every == 1) return brief({adam("Sqrt"), "output", p_.weight_bytes, d});
    if (s % p_.update_every != 0) return true;
    const std::string weight = "_" + std::to_string(updates_++ % p_.layers);
    for (const char* type : {"Sqrt", "Square", "Mul"})
      if (!brief({adam(type + weight), "output", p_.weight_bytes, d})) return false;
    return true;
  }

  // What a step leaves behind.
  bool keep(std::int64_t s) {
    auto stay = [&](const std::string& name, std::uint64_t bytes, std::uint64_t line) {
      if (bytes == 0) return true;
      auto block = get({name, "output", bytes, 0, 1, "", "train.py", line});
      if (block) stayed_.push_back(*block);
      return block.has_value();
    };
    if (s <= p_.warmup_steps && !stay("CacheFill", p_.cache_bytes, 51)) return false;
    if (p_.leak_bytes > 0 && s >= p_.leak_from && (s - p_.leak_from) % p_.leak_every == 0 &&
        (p_.leak_chance >= 1 || std::bernoulli_distribution(p_.leak_chance)(random_))) {
      if (!stay("Identity", leak_size(), 31)) return false;
      truth_.leaks += 1;
    }
    if (p_.saturating_bytes > 0) {
      double now = static_cast<double>(p_.saturating_bytes) * (1 - std::exp(-static_cast<double>(s) / p_.saturating_steps));
      auto grow = static_cast<std::uint64_t>(std::max(0.0, now - saturated_));
      if (grow >= 256) {
        saturated_ += static_cast<double>(grow);
        if (!stay("ShapeCache", grow, 52)) return false;
      }
    }
    if (p_.growing_block > 0) {
      auto larger = get({"ConcatV2", "output", p_.growing_block * static_cast<std::uint64_t>(s), 0, 1, "", "train.py", 33});
      if (!larger) return false;
      if (growing_) maker_.free(*growing_);
      growing_ = larger;
    }
    if (p_.noise > 0) return wander();
    return true;
  }

  // In whole quanta, so that the allocator's rounding does not shift the mean.
  std::uint64_t leak_size() {
    if (p_.leak_spread == 0) return p_.leak_bytes;
    leak_wander_ = p_.leak_memory * leak_wander_ +
                   std::sqrt(1 - p_.leak_memory * p_.leak_memory) * std::normal_distribution(0.0, 1.0)(random_);
    double quanta = static_cast<double>(p_.leak_bytes) / 256 * (1 + p_.leak_spread * leak_wander_);
    return static_cast<std::uint64_t>(std::max(1.0, std::round(quanta))) * 256;
  }

  // Blocks that come and go over many steps, so that their sum is an AR(1) process around three standard deviations.
  bool wander() {
    wander_ = p_.noise_memory * wander_ +
              std::sqrt(1 - p_.noise_memory * p_.noise_memory) * std::normal_distribution(0.0, p_.noise)(random_);
    double target = std::max(0.0, 3 * p_.noise + wander_), held = 0;
    for (const Handle& h : wandering_) held += static_cast<double>(h.granted);
    while (!wandering_.empty() && held > target) {
      held -= static_cast<double>(wandering_.front().granted);
      maker_.free(wandering_.front());
      wandering_.pop_front();
    }
    if (target - held >= 256) {
      auto block = get({"Prefetch", "dynamic", static_cast<std::uint64_t>(target - held) / 256 * 256, 0, 1, "", "train.py", 24});
      if (!block) return false;
      wandering_.push_back(*block);
    }
    return true;
  }

  bool evaluate() {
    phase(MarkEdge::begin, "evaluate");
    for (int b = 0; b < 3; ++b)
      for (int l = 0; l < p_.layers; ++l)
        if (!brief({op("", l, "Relu"), "output", p_.layer_bytes, 0, 1, "[32,64]"})) return false;
    phase(MarkEdge::end, "evaluate");
    return true;
  }

  void free_all() {
    for (const Handle& block : stayed_) maker_.free(block);
    for (const Handle& block : wandering_) maker_.free(block);
    for (const Handle& block : weights_) maker_.free(block);
    if (growing_) maker_.free(*growing_);
  }

  Result<Truth> done() {
    truth_.peak = maker_.peak(0);
    truth_.end = maker_.pool(0).live();
    truth_.allocs = maker_.allocs(0);
    if (p_.card != 0) maker_.device_sample(0, maker_.pool(0).pool() + kContext, p_.card, maker_.pool(0).pool() + kContext);
    if (p_.teardown) free_all();
    Status ok = p_.killed ? maker_.abandon() : maker_.finish();
    truth_.events = maker_.events();
    if (!ok) return std::unexpected(ok.error());
    return truth_;
  }

  Maker maker_;
  const Training& p_;
  std::mt19937_64 random_;
  Truth truth_;
  std::vector<Handle> weights_, stayed_;
  std::deque<Handle> wandering_;
  std::optional<Handle> growing_;
  int updates_ = 0;
  double wander_ = 0, saturated_ = 0, leak_wander_ = 0;
  std::uint64_t step_peak_ = 0;
};

}  // namespace

Result<Truth> write_training(const std::filesystem::path& path, const Training& program) {
  Maker::Options options = program.maker;
  options.devices = program.devices;
  auto maker = Maker::create(path, options);
  if (!maker) return std::unexpected(maker.error());
  return Run(std::move(*maker), program).go();
}

}  // namespace vramscope::tracegen
