#include "cli/help.h"

#include <fmt/format.h>

#include "cli/verb.h"

namespace vramscope::cli {

namespace {

std::string_view title(Group group) {
  switch (group) {
    case Group::record:
      return "Record";
    case Group::answer:
      return "Ask";
    case Group::inspect:
      return "Look inside";
    case Group::other:
      break;
  }
  return "Other";
}

}  // namespace

std::string help_page() {
  std::string page = "vramscope: every byte on the GPU, accounted for.\n\nUsage: vramscope VERB [options]\n";
  const auto all = verbs();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 0 || all[i].group != all[i - 1].group) page += fmt::format("\n{}\n", title(all[i].group));
    page += fmt::format("  {:<14}{}\n", all[i].name, all[i].help);
  }
  page +=
      "\nExamples\n"
      "  vramscope run -- python train.py          record a training, untouched\n"
      "  vramscope summary vramscope-runs/latest   what was recorded, in words\n"
      "  vramscope doctor                          what can be recorded on this machine\n"
      "\n'vramscope VERB --help' explains a verb. Exit codes: 0 fine, 1 a check failed, 2 bad usage or input; 'run' ends as the "
      "command does.\n";
  return page;
}

}  // namespace vramscope::cli
