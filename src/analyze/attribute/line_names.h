// Source lines as users read them: "train.py:13", with as many folders in front as needed to distinguish files of the same
// name.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/index/store.h"
#include "trace/gen/schema.h"
#include "trace/reader.h"

namespace vramscope::analyze {

// Whose code is where, as the interpreter of the recorded program said: frameworks may be installed anywhere.
struct CodeFolders {
  std::vector<std::string_view> libraries;
  std::string_view own;  // run --source-root: the user's, even where packages are installed
  bool is_library(std::string_view file) const;
};
CodeFolders folders_of(std::span<const Stamped<trace::Setting>> settings, const trace::Dictionaries& dictionaries);
CodeFolders folders_of(const Store& store);

// "train.py:13" for a path and a line, whatever other files are called.
std::string short_line(std::string_view file, std::uint64_t line);

class LineNames {
 public:
  explicit LineNames(const trace::Dictionaries& dictionaries, CodeFolders folders = {});

  std::string of(trace::StringId file, std::uint64_t line) const;
  // The innermost frame that the user wrote, preferably in a file; the innermost of all if there is none.
  std::string of_stack(std::size_t stack) const;

 private:
  struct File {
    std::string name;
    bool is_library = false;
  };

  const trace::Dictionaries& dictionaries_;
  CodeFolders folders_;
  tsl::robin_map<std::size_t, File> files_;  // by string id
};

}  // namespace vramscope::analyze
