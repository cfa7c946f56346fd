// What a Python installation offers, asked of the interpreter without importing any framework.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

struct FrameworkFound {
  std::string name;  // tensorflow, torch, jax, keras
  std::string version;
  std::filesystem::path folder;  // of the package
};

struct PythonFound {
  std::string executable;
  std::string version;
  std::vector<FrameworkFound> frameworks;
};

// `interpreter`: empty = python3 or python of PATH.
Result<PythonFound> probe_python(const std::string& interpreter);

}  // namespace vramscope::cli
