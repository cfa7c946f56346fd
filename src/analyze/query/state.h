// What an open engine holds. Inside analyze/ only.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "analyze/index/places.h"
#include "analyze/index/pool_figures.h"
#include "analyze/index/pools.h"
#include "analyze/index/pyramid.h"
#include "analyze/index/store.h"
#include "analyze/query/filter.h"
#include "analyze/query/grouper.h"
#include "analyze/steps/measure.h"
#include "support/once.h"

namespace vramscope::analyze {

// One grouping of one place under one filter, with its pyramid. The filter must outlive the grouper.
struct View {
  std::unique_ptr<Filter> filter;
  std::unique_ptr<Grouper> grouper;
  Pyramid pyramid;
};

struct Engine::State {
  explicit State(Store s) : store(std::move(s)) {}

  Store store;
  unsigned threads = 2;
  PoolFigures figures;
  std::vector<Place> places;
  std::vector<RegionLevels> levels;  // by place
  int main = -1;
  std::shared_ptr<const View> main_view;  // by category, from the index
  std::vector<StepMeasure> measures;      // of the main place
  Steady steady;

  // -1 = main. An error if there is no such place.
  Result<const Place*> place(int index) const;
  PoolSet pools(const Place& place) const { return pools_of(place, store.dictionaries().pools.size()); }
  Result<Filter> filter(std::string_view where, Moment now = kNever, int place = -1) const;
  // Built on first use, then kept.
  Result<std::shared_ptr<const View>> view(int place, By by, std::string_view where, std::size_t bands) const;
  // Totals of a place without a grouping.
  Result<std::shared_ptr<const View>> total(int place, std::string_view where = {}) const;
  Bytes live_at(const View& view, Moment at) const;
  Bytes regions_at(const Place& place, Moment at) const {
    return level_at(levels[static_cast<std::size_t>(&place - places.data())], at);
  }
  Result<Moment> resolve(std::string_view instant, int place) const;
  std::int64_t step_number(Moment at) const;  // of the training step that holds the moment, 0 = none
  std::uint64_t failures() const;             // requests that ended in an out-of-memory error
  std::uint64_t numbered_steps() const;       // of training, or of the first kind if nothing is trained

 private:
  // Built by the first caller; the others wait for it instead of building it again.
  struct Kept {
    std::string key;
    support::Once once;
    Result<std::shared_ptr<const View>> view;
  };
  std::shared_ptr<Kept> kept(std::string key) const;
  Result<std::shared_ptr<const View>> build(int place, By by, std::string_view where, std::size_t bands) const;

  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<Kept>> views_;  // newest first
};

// The last recorded value; "" if there is none.
std::string setting(const Store& store, std::string_view key);
std::string_view setting_text(const Store& store, std::string_view key);  // valid while the store is

// "reported", "inferred", "none"
std::string_view source_of_steps(const Store& store);

// What could not be read, as a sentence fragment; empty if everything was read.
std::string damage_of(const Store& store);
std::unexpected<Error> not_enough_memory(const std::filesystem::path& trace);

}  // namespace vramscope::analyze
