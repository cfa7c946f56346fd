// What a Python installation offers, asked of the interpreter without importing any framework.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analyze/framework.h"
#include "support/result.h"

namespace vramscope::cli {

struct PackageFound {
  analyze::Package package;
  std::string version;
  std::filesystem::path folder;  // of the package
};

struct PythonFound {
  std::string executable;
  std::string version;
  std::vector<PackageFound> packages;  // those that a framework names, as far as they are installed
};

// `interpreter`: empty = python3 or python of PATH.
Result<PythonFound> probe_python(const std::string& interpreter);

}  // namespace vramscope::cli
