#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/child.h"
#include "cli/python_script.h"
#include "cli/query_script.h"
#include "cli/run/launch.h"
#include "cli/run/memory_limit.h"
#include "cli/run_folder.h"
#include "cli/verb.h"
#include "cli/write_tables.h"
#include "exporters/tables.h"
#include "support/fresh_file.h"
#include "support/owned_folder.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

// $VRAMSCOPE_PYTHON, or the first of PATH.
Result<std::string> interpreter() {
  if (const char* chosen = std::getenv("VRAMSCOPE_PYTHON"); chosen != nullptr) {
    if (const auto found = find_command(chosen)) return *found;
    return fail(fmt::format("VRAMSCOPE_PYTHON={}: not a program that can be run; set it to a Python with DuckDB", chosen));
  }
  for (const char* name : {"python3", "python"})
    if (const auto found = find_command(name)) return *found;
  return fail("query runs DuckDB in Python, and there is no python3 on PATH; install it, or set VRAMSCOPE_PYTHON");
}

// DuckDB would follow a link that appeared in the meantime: it writes into a folder of its own, and nothing is replaced.
template <typename Write>
Result<int> write_new(const std::filesystem::path& output, const Write& write) {
  const std::filesystem::path parent = output.has_parent_path() ? output.parent_path() : std::filesystem::path(".");
  const auto folder = support::OwnedFolder::create(parent, ".vramscope-query-");
  if (!folder) return support::cannot_create(output, "");
  const std::filesystem::path fresh = folder->path() / "result.parquet";
  Result<int> code = write(fresh.string());
  if (code && *code == 0 && !support::rename_to_new(fresh, output)) code = support::exists_already(output);
  folder->remove([](std::string_view) { return true; });
  return code;
}

// Those that the query names, in any case as in SQL; of a query that names none, such as SHOW TABLES, all.
std::function<bool(std::string_view)> tables_in(std::string sql) {
  std::ranges::transform(sql, sql.begin(), [](unsigned char c) { return std::tolower(c); });
  auto names = [sql](std::string_view table) { return sql.contains(table); };
  if (std::ranges::any_of(exporters::tables(), names, &exporters::Table::name)) return names;
  return [](std::string_view) { return true; };
}

class QueryVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("words", words_, "traces or run folders, then the query");
    arguments.choice("--format", format_, {"table", "csv", "json", "parquet"}, "format of the result (default: table)");
    arguments.text("-o,--output", output_, "output file for --format parquet, which must not exist", "FILE");
  }

  Result<int> run() override {
    if (words_.size() < 2) return fail("expected one or more traces, then a query such as 'select * from steps'");
    if ((format_ == "parquet") != !output_.empty()) return fail("-o is needed for --format parquet, and only there");
    std::error_code error;
    if (!output_.empty() && std::filesystem::exists(std::filesystem::symlink_status(output_, error)))
      return support::exists_already(output_);
    const auto python = interpreter();
    if (!python) return std::unexpected(python.error());
    const std::string sql = words_.back();
    std::vector<std::filesystem::path> traces, sources;
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      const auto found = traces_of(words_[i]);
      if (!found) return std::unexpected(found.error());
      for (const auto& trace : *found) {  // a profile of another tool was imported into a file elsewhere
        traces.push_back(trace);
        sources.emplace_back(std::filesystem::is_directory(words_[i]) ? trace.string() : words_[i]);
      }
    }
    const auto folder = support::OwnedFolder::create_temporary("vramscope-query-");
    if (!folder) return std::unexpected(folder.error());
    Status written = write_tables(traces, sources, folder->path(), tables_in(sql));
    const auto ask = [&](const std::string& output) -> Result<int> {
      if (!written) return std::unexpected(written.error());
      const QueryLimits limits = limit_memory_of_query();
      const auto ended = run_and_wait(*python, {*python, "-c", python_script(kQueryScript), folder->path().string(), format_,
                                                output, fmt::format("{}", limits.memory), fmt::format("{}", limits.disk), sql});
      return ended ? code_of(*ended, *python, limits) : ended;
    };
    const auto code = output_.empty() ? ask("") : write_new(output_, ask);
    folder->remove([](std::string_view) { return true; });
    return code;
  }

 private:
  static constexpr int kNotTheScript = 1;  // the script itself ends with other codes

  // Our own exit code, from that of the interpreter.
  Result<int> code_of(int ended, const std::string& python, const QueryLimits& limits) const {
    const char* const smaller =
        format_ == "table" ? "choose fewer rows or columns, or --format csv" : "choose fewer rows or columns";
    if (ended == kNoDuckDb)
      return fail(fmt::format(
          "query needs DuckDB; install it with '{} -m pip install duckdb', or set VRAMSCOPE_PYTHON to a Python that has it",
          python));
    if (ended == kTooLarge)
      return fail(fmt::format("query: needs more than {} of memory or {} of disk, the limits for traces of this size; {}",
                              support::format_size(limits.memory), support::format_size(limits.disk), smaller));
    if (ended == kNotTheScript)
      return fail(fmt::format("{}: failed before it ran the query; set VRAMSCOPE_PYTHON to a Python with DuckDB", python));
    const int by = ended - kEndedBySignal;
    if (by <= 0 || by == SIGINT || by == SIGQUIT || by == SIGPIPE) return ended;  // Ctrl-C, or nobody reads the output
    return fail(
        fmt::format("query: {} was ended by signal {} ({}); if it ran out of memory, {}", python, by, strsignal(by), smaller));
  }

  std::vector<std::string> words_;
  std::string format_ = "table", output_;
};

const Register kVerb{{.name = "query",
                      .group = Group::inspect,
                      .help = "query one or more traces with SQL, using DuckDB",
                      .examples =
                          "  vramscope query run.vram \"select layer, sum(granted) from blocks group by layer order by 2 desc\"\n"
                          "  vramscope query runs/today \"select rank, max(peak) from steps group by rank\" --format csv\n",
                      .make = make<QueryVerb>}};

}  // namespace

}  // namespace vramscope::cli
