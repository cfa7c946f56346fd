// Answers every request of schema/rpc from the analysis. Arranges and words; never counts memory itself.
#pragma once

#include <memory>

#include "serve/gen/rpc.h"
#include "serve/library.h"

namespace vramscope::serve {

class EngineService final : public Service {
 public:
  explicit EngineService(std::shared_ptr<Library> library) : library_(std::move(library)) {}

  Result<Hello> hello(const HelloParams& params) override;
  Result<Overview> overview(const OverviewParams& params) override;
  Result<Steps> steps(const StepsParams& params) override;
  Result<Stack> stack(const StackParams& params) override;
  Result<Tracks> tracks(const TracksParams& params) override;
  Result<Marks> marks(const MarksParams& params) override;
  Result<Instant> instant(const InstantParams& params) override;
  Result<Range> range(const RangeParams& params) override;
  Result<Place> place(const PlaceParams& params) override;
  Result<Peak> peak(const PeakParams& params) override;
  Result<Layers> layers(const LayersParams& params) override;
  Result<Leaks> leaks(const LeaksParams& params) override;
  Result<PoolMap> map(const MapParams& params) override;
  Result<Block> block(const BlockParams& params) override;
  Result<Ooms> ooms(const OomsParams& params) override;
  Result<Diff> diff(const DiffParams& params) override;
  Result<Source> source(const SourceParams& params) override;
  Result<Suggestions> suggest(const SuggestParams& params) override;

 private:
  std::shared_ptr<Library> library_;
};

}  // namespace vramscope::serve
