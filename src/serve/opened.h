// An opened trace with the answers that many views need, each computed once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analyze/api.h"
#include "analyze/whatif/step_whatif.h"
#include "support/once.h"

namespace vramscope::serve {

// A value that is computed at its first use; thread-safe.
template <typename T>
class Lazy {
 public:
  template <typename Make>
  const T& get(Make make) const {
    once_.call([&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  mutable support::Once once_;
  mutable std::optional<T> value_;
};

class Opened {
 public:
  explicit Opened(analyze::Engine engine) : engine_(std::move(engine)) {}

  const analyze::Engine& engine() const { return engine_; }
  const analyze::Overview& overview() const {
    return overview_.get([this] { return engine_.overview(); });
  }
  const analyze::Steps& steps() const {
    return steps_.get([this] { return engine_.steps(); });
  }
  const std::vector<analyze::Phase>& phases() const {
    return phases_.get([this] { return engine_.phases(); });
  }
  const std::vector<analyze::Sample>& samples() const {
    return samples_.get([this] { return engine_.samples(); });
  }
  const analyze::Ooms& ooms() const {
    return ooms_.get([this] { return engine_.ooms(); });
  }
  const analyze::Findings& findings() const {
    return findings_.get([this] { return engine_.findings(); });
  }
  const Result<analyze::Leaks>& leaks() const {
    return leaks_.get([this] { return engine_.leaks(); });
  }
  const Result<analyze::Fragmentation>& fragmentation() const {
    return fragmentation_.get([this] { return engine_.fragmentation(); });
  }
  const Result<analyze::StepWhatif>& whatif() const {
    return whatif_.get([this] { return analyze::StepWhatif::of(engine_); });
  }

 private:
  analyze::Engine engine_;
  Lazy<analyze::Overview> overview_;
  Lazy<analyze::Steps> steps_;
  Lazy<std::vector<analyze::Phase>> phases_;
  Lazy<std::vector<analyze::Sample>> samples_;
  Lazy<analyze::Ooms> ooms_;
  Lazy<analyze::Findings> findings_;
  Lazy<Result<analyze::Leaks>> leaks_;
  Lazy<Result<analyze::Fragmentation>> fragmentation_;
  Lazy<Result<analyze::StepWhatif>> whatif_;
};

}  // namespace vramscope::serve
