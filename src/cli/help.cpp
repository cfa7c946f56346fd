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
      return "Analyze";
    case Group::inspect:
      return "Inspect";
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
      "  vramscope run -- python train.py          record an unmodified training run\n"
      "  vramscope summary vramscope-runs/latest   show what was recorded\n"
      "  vramscope doctor                          check what can be recorded on this machine\n"
      "\n'vramscope VERB --help' describes a verb. Exit codes: 0 success, 1 a check failed, 2 bad usage or input; 'run' exits "
      "with the "
      "code of its command.\n";
  return page;
}

}  // namespace vramscope::cli
