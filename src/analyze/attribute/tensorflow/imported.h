// What the names of TensorFlow's ops say by themselves. A recording reports its variables and their gradients; an imported
// profile does not.
#pragma once

#include <string>
#include <string_view>

#include <tsl/robin_set.h>

#include "analyze/index/store.h"

namespace vramscope::analyze::tensorflow {

class ImportedNames {
 public:
  explicit ImportedNames(const trace::Dictionaries& dictionaries);

  // Of a result in a backward pass or in an optimizer; unknown if the name can mean either kind of gradient.
  trace::Category category(std::string_view op) const;

 private:
  tsl::robin_set<std::string_view> ops_;
};

}  // namespace vramscope::analyze::tensorflow
