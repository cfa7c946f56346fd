// Each rule of attribution by itself, and which of two comes first.
#include "analyze/attribute/rules.h"

#include <gtest/gtest.h>

#include <set>

#include "analyze/attribute/jax/rules.h"
#include "analyze/attribute/pytorch/rules.h"
#include "analyze/attribute/tensorflow/rules.h"

namespace vramscope::analyze {
namespace {

using trace::Category;
using trace::Framework;

// A block that one step of TensorFlow makes and gives back.
BlockFacts in_one_step() {
  BlockFacts facts;
  facts.framework = Framework::tensorflow;
  facts.in_step = facts.ends_in_step = facts.ends_in_training = facts.freed = true;
  facts.stage = Stage::forward;
  return facts;
}

void expect(const BlockFacts& facts, Category category, Known known) {
  const Meaning meaning = decide(facts);
  EXPECT_EQ(meaning.category, category);
  EXPECT_EQ(meaning.known, known);
}

TEST(AttributionRules, HaveNamesOfTheirOwn) {
  for (const analyze::Framework* framework : frameworks()) {
    std::set<std::string_view> names;
    for (const Rule& rule : attribution_rules(framework->id)) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
  }
}

TEST(AttributionRules, NothingIsKnownWithoutFacts) { expect({}, Category::unknown, Known::unknown); }

TEST(AttributionRules, ANameComesBeforeALifetime) {
  BlockFacts facts = in_one_step();
  facts.named = Category::gradient;
  expect(facts, Category::gradient, Known::named);
}

TEST(AttributionRules, LifetimeTellsActivationsFromTemporaries) {
  BlockFacts facts = in_one_step();
  expect(facts, Category::temporary, Known::inferred);
  facts.lives_on = true;
  expect(facts, Category::activation, Known::inferred);
  facts.ends_in_training = facts.ends_in_step = false;
  expect(facts, Category::unknown, Known::unknown);
}

TEST(AttributionRules, WhatTheBackwardPassDoesNotReadIsNoActivationHoweverLongItLives) {
  BlockFacts facts = in_one_step();
  facts.lives_on = facts.unread = true;
  expect(facts, Category::temporary, Known::inferred);
  facts.named = Category::temporary;  // scratch that became the op's result
  expect(facts, Category::temporary, Known::named);
  facts.unread = false;
  expect(facts, Category::activation, Known::inferred);
}

TEST(AttributionRules, WhatAProgramOfXlaAllocatesAndFreesAreItsTemporaries) {
  BlockFacts facts = in_one_step();
  facts.framework = Framework::jax;
  facts.own = jax::kExecuted;
  expect(facts, Category::xla_temporary, Known::inferred);
  facts.ends_in_step = facts.ends_in_training = false;  // a result
  expect(facts, Category::unknown, Known::unknown);
  facts.in_step = false;
  expect(facts, Category::xla_temporary, Known::inferred);
  facts.own = 0;
  expect(facts, Category::unknown, Known::unknown);
}

TEST(AttributionRules, ScopesInNamesOfJaxAreLayers) {
  const auto expect_op = [](std::string_view op, std::string_view layer, Stage stage) {
    const OpMeaning meaning = jax::meaning_of(op, "output");
    EXPECT_EQ(meaning.layer, layer) << op;
    EXPECT_EQ(meaning.stage, stage) << op;
  };
  expect_op("jit(train_step)/jvp(Net)/Dense_0/dot_general", "Net/Dense_0", Stage::forward);
  expect_op("jit(train_step)/transpose(jvp(Net))/Dense_0/dot_general", "Net/Dense_0", Stage::backward);
  expect_op("jit(train_step)/jvp(dense_0)/jit(relu)/max", "dense_0", Stage::forward);
  expect_op("jit(train_step)/transpose(jvp(vmap(a/b)))/checkpoint/rematted_computation/tanh", "a/b", Stage::backward);
  expect_op("jit(train_step)/jvp()/reduce_sum", "", Stage::forward);
  expect_op("jit(train_step)/while/body/closed_call/layer/add", "layer", Stage::other);
  expect_op("jit(train_step)/mul", "", Stage::other);
  expect_op("jit(train_step)/jvp(unclosed/mul", "", Stage::forward);
  expect_op("params['params']['encoder']['dense_0']['kernel']", "encoder/dense_0", Stage::other);
  expect_op("params[\\'dense_0\\'][\\'kernel\\']", "dense_0", Stage::other);
  expect_op("params['unclosed", "", Stage::other);
}

TEST(AttributionRules, WhatJaxIsDoingNamesBlocks) {
  EXPECT_EQ(jax::meaning_of("jit_train_step", "compile").category, Category::workspace);
  EXPECT_EQ(jax::meaning_of("device_put", "transfer").category, Category::input);
  EXPECT_EQ(jax::meaning_of("jit_train_step", "execute").category, Category::unknown);
}

TEST(AttributionRules, ResultsOfAProgramOfJaxAreNotItsTemporaries) {
  BlockFacts facts = in_one_step();
  facts.framework = Framework::jax;
  facts.own = jax::kExecuted;
  expect(facts, Category::xla_temporary, Known::inferred);
  facts.own = jax::kResult;
  facts.lives_on = true;
  expect(facts, Category::temporary, Known::inferred);
  facts.ends_in_step = facts.ends_in_training = false;
  expect(facts, Category::unknown, Known::unknown);
  facts.in_step = false;
  expect(facts, Category::unknown, Known::unknown);
}

TEST(AttributionRules, AStepThatWasCutShortSaysNothingByLifetime) {
  BlockFacts facts = in_one_step();
  facts.cut_off = true;
  expect(facts, Category::unknown, Known::unknown);
  facts.has_layer = true;
  expect(facts, Category::activation, Known::inferred);
  facts.stage = Stage::backward;
  expect(facts, Category::unknown, Known::unknown);
  facts.lives_on = true;
  expect(facts, Category::activation, Known::inferred);
}

TEST(AttributionRules, ScratchThatOutlivesItsOpWasItsResult) {
  BlockFacts facts = in_one_step();
  facts.named = Category::temporary;
  expect(facts, Category::temporary, Known::named);
  facts.lives_on = true;
  expect(facts, Category::activation, Known::inferred);
}

TEST(AttributionRules, AnEagerOptimizerGivesItsSlotsNewBlocks) {
  BlockFacts facts = in_one_step();
  facts.stage = Stage::optimizer;
  facts.slots_reported = facts.kept_by_step = true;
  facts.named = Category::temporary;
  expect(facts, Category::temporary, Known::named);
  facts.own = tensorflow::kEagerOp;
  expect(facts, Category::optimizer_state, Known::inferred);
  facts.kept_by_step = false;
  expect(facts, Category::temporary, Known::named);
}

TEST(AttributionRules, XlaNamesNothingOnADevice) {
  BlockFacts facts = in_one_step();
  facts.own = tensorflow::kUnnamed;
  facts.on_device = true;
  expect(facts, Category::xla_temporary, Known::inferred);
  facts.on_device = false;
  expect(facts, Category::temporary, Known::inferred);
  facts.own |= tensorflow::kXlaPlanned;
  expect(facts, Category::xla_temporary, Known::inferred);
  facts.own |= tensorflow::kPipelineThread;
  expect(facts, Category::temporary, Known::inferred);
}

TEST(AttributionRules, AnArrayFromPythonIsABatch) {
  BlockFacts facts = in_one_step();
  facts.own = tensorflow::kUnnamed | tensorflow::kPythonThread;
  expect(facts, Category::input, Known::inferred);
  facts.has_layer = true;
  expect(facts, Category::temporary, Known::inferred);
}

TEST(AttributionRules, ABackwardPassHandsItsValuesOnAndLeavesGradients) {
  for (Framework framework : {Framework::tensorflow, Framework::pytorch}) {
    BlockFacts facts = in_one_step();
    facts.framework = framework;
    facts.named_stage = facts.stage = Stage::backward;
    expect(facts, Category::activation_gradient, Known::inferred);
    facts.kept_by_pass = true;
    expect(facts, Category::gradient, Known::inferred);
    facts.cut_off = true;  // it was still under way
    expect(facts, Category::activation_gradient, Known::inferred);
  }
}

TEST(AttributionRules, WhatOneOpOfTheBackwardPassKeepsForItselfIsScratch) {
  BlockFacts facts = in_one_step();
  facts.framework = Framework::pytorch;
  facts.named_stage = facts.stage = Stage::backward;
  facts.own = pytorch::kWithinNode;
  expect(facts, Category::temporary, Known::inferred);
  facts.kept_by_pass = true;  // made by the last op, and left behind
  expect(facts, Category::gradient, Known::inferred);
}

TEST(AttributionRules, WhatALoaderMakesIsABatch) {
  BlockFacts facts;
  facts.framework = Framework::pytorch;
  facts.stage = Stage::input;
  expect(facts, Category::input, Known::inferred);
}

TEST(AttributionRules, WhatTheOptimizerKeepsIsItsState) {
  BlockFacts facts = in_one_step();
  facts.stage = facts.named_stage = Stage::optimizer;
  facts.named = Category::temporary;
  expect(facts, Category::temporary, Known::named);
  facts.kept_by_step = true;
  expect(facts, Category::optimizer_state, Known::inferred);
  facts.slots_reported = true;
  expect(facts, Category::temporary, Known::named);
}

TEST(AttributionRules, TheInputPipelineComesLast) {
  BlockFacts facts;
  facts.framework = Framework::tensorflow;
  facts.own = tensorflow::kPipelineThread;
  expect(facts, Category::input, Known::inferred);
  facts.named = Category::constant;
  expect(facts, Category::constant, Known::named);
}

TEST(AttributionRules, AWorkspaceOfCublasStaysWithItsLayer) {
  BlockFacts facts;
  facts.framework = Framework::pytorch;
  facts.own = pytorch::kSizeOfWorkspace;
  facts.stays = true;
  expect(facts, Category::unknown, Known::unknown);
  facts.has_layer = true;
  expect(facts, Category::workspace, Known::inferred);
}

TEST(AttributionRules, TheLineOfTheFirstBatchMakesTheOthers) {
  BlockFacts facts;
  facts.framework = Framework::pytorch;
  facts.stage = Stage::backward;  // the step goes on after its backward pass
  facts.in_step = true;
  expect(facts, Category::unknown, Known::unknown);
  facts.own = pytorch::kForNextPass;
  expect(facts, Category::input, Known::inferred);
  facts.named_stage = Stage::backward;
  expect(facts, Category::activation_gradient, Known::inferred);
}

TEST(AttributionRules, AnEvaluationKeepsNothing) {
  BlockFacts facts;
  facts.framework = Framework::pytorch;
  facts.stage = Stage::evaluate;
  expect(facts, Category::unknown, Known::unknown);
  facts.freed = true;
  expect(facts, Category::temporary, Known::inferred);
}

}  // namespace
}  // namespace vramscope::analyze
