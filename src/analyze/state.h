// What an open engine holds. Inside analyze/ only.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analyze/api.h"
#include "analyze/filter.h"
#include "analyze/grouper.h"
#include "analyze/places.h"
#include "analyze/pyramid.h"
#include "analyze/step_measure.h"
#include "analyze/store.h"

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
  std::vector<Place> places;
  int main = -1;
  std::shared_ptr<const View> main_view;  // by category, from the index
  std::vector<StepMeasure> measures;      // of the main place
  Steady steady;

  // -1 = main. An error where there is no such place.
  Result<const Place*> place(int index) const;
  PoolSet pools(const Place& place) const { return pools_of(place, store.words().pools.size()); }
  Result<Filter> filter(std::string_view where, Moment now = kNever, int place = -1) const;
  // Built on first use, then kept.
  Result<std::shared_ptr<const View>> view(int place, By by, std::string_view where, std::size_t bands) const;
  // Totals of a place without a grouping.
  Result<std::shared_ptr<const View>> total(int place, std::string_view where = {}) const;
  Bytes live_at(const View& view, Moment at) const;
  Result<Moment> resolve(std::string_view instant, int place) const;
  std::int64_t step_number(Moment at) const;  // of the training step that holds the moment, 0 = none
  std::uint64_t numbered_steps() const;       // of training, or of the first kind where nothing is trained

 private:
  mutable std::mutex mutex_;
  mutable std::list<std::pair<std::string, std::shared_ptr<const View>>> views_;  // newest first
};

// "at 6.244 s" and the like use the same words everywhere.
std::string setting(const Store& store, std::string_view key);

}  // namespace vramscope::analyze
