// The framework of the tests as the analysis knows it: everything that src/analyze/attribute/<framework>/ holds for a real one.
#include "analyze/framework.h"

namespace vramscope::analyze::toyframe {
namespace {

enum OwnFact : std::uint32_t { kRing = 1 };

// Ops are called "layer/what". What ends with "'" is a gradient.
OpMeaning meaning_of(std::string_view op, std::string_view /*region*/) {
  OpMeaning out;
  const std::size_t slash = op.find('/');
  if (slash != std::string_view::npos) out.layer = op.substr(0, slash);
  if (op.ends_with('\'')) {
    out.stage = Stage::backward;
    out.category = trace::Category::gradient;
  }
  return out;
}

// ToyFrame reads its data through a ring of buffers that live from the first to the last batch.
std::optional<Meaning> ring_of_batches(const BlockFacts& facts) {
  if ((facts.own & kRing) == 0) return std::nullopt;
  return Meaning{trace::Category::input, Known::inferred};
}

constexpr Rule kRules[] = {{"ring of batches", Precedence::before_name, ring_of_batches}};

class RingFacts final : public OwnFacts {
 public:
  explicit RingFacts(const Store& draft) : draft_(draft) {}
  void of_kind(const Kind& kind, BlockFacts& facts) const override {
    if (draft_.text(draft_.site_of(kind).op) == "ring") facts.own |= kRing;
  }

 private:
  const Store& draft_;
};

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& /*columns*/, const Scopes& /*scopes*/) {
  return std::make_unique<RingFacts>(draft);
}

constexpr Advice kRemedies[] = {{Remedy::recompute_activations, "toyframe.forget()"}};
constexpr std::string_view kVersionSettings[] = {"toyframe.version"};
constexpr std::string_view kDistributions[] = {"toyframe"};
constexpr std::string_view kNeeds[] = {"toy_allocate", "toy_release"};
constexpr Package kPackages[] = {{.module = "toyframe",
                                  .distributions = kDistributions,
                                  .name = "ToyFrame",
                                  .library = "libtoyframe.so",
                                  .symbols = "toy_",
                                  .needs = kNeeds}};

}  // namespace

extern const Framework kFramework;
constinit const Framework kFramework = {
    .id = trace::Framework{31},
    .word = "toyframe",
    .name = "ToyFrame",
    .version_settings = kVersionSettings,
    .packages = kPackages,
    .meaning_of = meaning_of,
    .rules = kRules,
    .own_facts = own_facts,
    .remedies = kRemedies,
};

}  // namespace vramscope::analyze::toyframe
