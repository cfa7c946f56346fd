#include "analyze/attribute/jax/rules.h"

#include "analyze/attribute/jax/op_names.h"

namespace vramscope::analyze::jax {

using trace::Category;

namespace rules {

// Results of a step outlive it; what does not is the block in which XLA has placed all of a program's intermediate values.
std::optional<Meaning> temporaries_of_program(const BlockFacts& facts) {
  if ((facts.own & kExecuted) == 0 || !(facts.in_step ? facts.ends_in_step : facts.freed)) return std::nullopt;
  return Meaning{Category::xla_temporary, Known::inferred};
}

// A loss, or gradients that another program applies.
std::optional<Meaning> results_used_up(const BlockFacts& facts) {
  if ((facts.own & kResult) == 0 || !facts.in_step || !facts.ends_in_step) return std::nullopt;
  return Meaning{Category::temporary, Known::inferred};
}

}  // namespace rules

OpMeaning meaning_of(std::string_view op, std::string_view activity) {
  if (is_name(op)) return meaning_of_op(op);
  OpMeaning out;
  out.stage = stage_from(activity);
  if (activity == "compile") out.category = Category::workspace;  // algorithms are tried on buffers of the compiler
  if (activity == "transfer") {
    out.category = Category::input;
    out.layer = kInputGroup;
  }
  return out;
}

namespace {

class JaxFacts final : public OwnFacts {
 public:
  explicit JaxFacts(const Store& draft) : draft_(draft) {}

  void of_kind(const Kind& kind, BlockFacts& facts) const override {
    const std::string_view activity = draft_.text(draft_.site_of(kind).region);
    if (activity == "execute") facts.own |= kExecuted;
    if (activity == "result") facts.own |= kResult;
  }

 private:
  const Store& draft_;
};

}  // namespace

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& /*columns*/, const Scopes& /*scopes*/) {
  return std::make_unique<JaxFacts>(draft);
}

}  // namespace vramscope::analyze::jax
