// Answers every request of schema/rpc from the analysis. Arranges and phrases; never counts memory itself.
#pragma once

#include <memory>

#include "serve/gen/rpc.h"
#include "serve/library.h"

namespace vramscope::serve {

class EngineService final : public Service {
 public:
  explicit EngineService(std::shared_ptr<Library> library) : library_(std::move(library)) {}

#include "serve/gen/overrides.inc"  // one for each request

 private:
  std::shared_ptr<Library> library_;
};

}  // namespace vramscope::serve
