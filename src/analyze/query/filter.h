// The filter language of --where and of the UI's filter box.
//
//   layer:conv2d_1 and size>1MiB        category:temporaries kind:workspace      phase:backward op:/Conv2D.*Filter/
//   line:train.py:13                    born:step1 and live@end                  age>2steps not known:reported
//   region:6 or region:7                relu (a bare word: op, layer, line or name contains it)
//
// Adjacent terms are joined by "and". A value may contain * as a wildcard, and is quoted if it contains spaces.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/index/store.h"
#include "support/result.h"

namespace vramscope::analyze {

// What a filter may need to know beyond the block itself.
struct FilterContext {
  std::function<Result<Moment>(std::string_view)> resolve;  // for live@peak and similar
  Moment now = kNever;                                      // age counts up to here; kNever: to the block's own end
};

class Filter {
 public:
  // An empty text matches everything. An error quotes the wrong word.
  static Result<Filter> compile(std::string_view text, const Store& store, const FilterContext& context);
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;
  ~Filter();

  bool everything() const;
  bool single_blocks() const;               // true if blocks of one cohort may differ: age, born, live@, name, id, ...
  bool matches(std::uint64_t alloc) const;  // thread-safe

  struct Node;

 private:
  Filter();
  std::unique_ptr<Node> root_;
  const Store* store_ = nullptr;
};

// Fields that can precede a colon, for completion and for error messages.
std::vector<std::string_view> filter_fields();

// Like support::parse_size: bytes. nullopt if it is not a size.
std::optional<double> parse_size(std::string_view text);
// "250ms", "3s", "12us": microseconds.
std::optional<double> parse_duration(std::string_view text);

}  // namespace vramscope::analyze
