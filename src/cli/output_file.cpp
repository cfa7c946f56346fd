#include "cli/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "analyze/api.h"

namespace vramscope::cli {

Status not_an_input(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    const auto files = analyze::traces_in(input);
    if (!files) continue;  // whoever reads it says what is wrong with it
    for (const auto& file : *files) {
      std::error_code error;
      if (std::filesystem::equivalent(file, output, error))
        return fail(fmt::format("{} is {}, which is read: it would be destroyed; choose another file to write", output,
                                file.string() == output ? "an input" : "the same file as " + file.string()));
    }
  }
  return {};
}

Status write_output(const std::string& output, std::string_view text) {
  std::ofstream file(output, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(fmt::format("cannot write {}; choose another place", output));
  return {};
}

}  // namespace vramscope::cli
