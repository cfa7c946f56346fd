// The answer about leaks in words.
#pragma once

#include <string>

#include "analyze/query/state.h"
#include "analyze/verdict/keeper.h"
#include "analyze/verdict/survivors.h"

namespace vramscope::analyze {

// Origins that kept something but are not judged to grow.
struct Undecided {
  std::size_t few = 0;   // kept something in more than one step, too rarely
  std::size_t seen = 0;  // the most steps in which one of those did
  double few_bytes = 0;  // what all that kept something rarely have kept
  std::size_t slowing = 0;
  std::size_t noisy = 0;
};

// Nothing but the optimizer's own state grows, as the history of L-BFGS does until it is full: no leak.
bool only_optimizer_grows(const Leaks& leaks);

// A list of losses grows by a number per step: no trouble before it adds up.
bool growth_matters(const Leaks& leaks, Bytes peak);

// What a container keeps from step to step. `title` is that of the leak, if the container explains it.
Finding held_tensors(const Keeper& keeper, const std::string& title, const std::string& remedy, Bytes bytes);

// Sets verdict and why where nothing is judged to grow.
void explain_no_growth(Leaks& out, std::size_t steps, const Undecided& undecided);

// What grows, how fast, and its one place: the container that keeps it, if it is known, or the line that allocates it. `keeper`
// may be NULL.
std::string growing_sentence(const Leaks& leaks, const Keeper* keeper);
std::string leak_advice(const Leaks& leaks, const Keeper* keeper, trace::Framework framework);
// Where nothing grows, or where that is not known.
std::string leak_sentence(const Leaks& leaks, const Store& store, const StepWindow& window);

}  // namespace vramscope::analyze
