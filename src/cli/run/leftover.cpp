#include "cli/run/leftover.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <sstream>

#include "analyze/xla_dump.h"
#include "cli/run/native_symbols.h"
#include "cli/run/recording.h"
#include "collect/spool/spool_folder.h"
#include "support/file.h"

namespace vramscope::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLinkPrefix = ".spool-";
constexpr std::size_t kLongestRecoveryFile = 64 * 1024;

struct Identity {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const Identity&) const = default;
};

std::optional<Identity> identity_of(const fs::path& folder) {
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return std::nullopt;
  return Identity{info.st_dev, info.st_ino};
}

struct RecoveryFile {
  collect::CollectOptions options;
  std::optional<Identity> output;  // what the run folder was
};

std::string read_recovery_file(const fs::path& path) {
  std::string text;
  const int file = support::open_own_file(path, O_RDONLY);
  if (file < 0) return text;
  text.resize(kLongestRecoveryFile);
  const ssize_t got = read(file, text.data(), text.size());
  close(file);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// Defaults if there is nothing.
RecoveryFile recovery_file_in(const fs::path& spool) {
  RecoveryFile left;
  collect::CollectOptions& options = left.options;
  options.host = host_name();
  std::istringstream fields(read_recovery_file(spool / collect::kOptionsName));
  for (std::string key; fields >> key;) {
    if (key == "host" && fields >> options.host) options.host = safe_name(options.host);
    if (key == "trace_limit") fields >> options.trace_limit;
    if (key == "spool_limit") fields >> options.spool_limit;
    if (key == "sample_hz") fields >> options.sample_hz;
    if (std::string plans; key == "xla_plans" && fields >> plans)
      options.settings[std::string(analyze::kXlaPlans)] = safe_name(plans);
    if (trace::AnonymousKey hash_key; key == "anonymize" && fields >> hash_key[0] >> hash_key[1]) options.anonymize = hash_key;
    if (Identity folder; key == "output" && fields >> folder.device >> folder.inode) left.output = folder;
    // A copy or an unpacked archive is another folder. The programs and libraries that it names are not opened then.
    if (Identity own; key == "spool" && fields >> own.device >> own.inode && identity_of(spool) == own)
      options.native_symbol = native_symbols();
  }
  return left;
}

bool belongs_together(const fs::path& spool, const RecoveryFile& left, const fs::path& folder) {
  const auto here = identity_of(folder);
  return here && (left.output == here || identity_of(spool / collect::kRunLink) == here);
}

void take_linked(const fs::path& link, const fs::path& folder, Leftovers& all) {
  std::error_code error;
  const fs::path place = fs::read_symlink(link, error);
  if (!place.is_absolute() || fs::symlink_status(place, error).type() == fs::file_type::not_found) {
    all.remarks.push_back(fmt::format(
        "{}: the spool no longer exists (a reboot removes it); the trace ends where its last write ended", place.string()));
    support::remove_own_link(link);
    return;
  }
  auto spool = support::OwnedFolder::open(place);
  if (!spool) {
    all.remarks.push_back(fmt::format("{}: skipped: {}", link.string(), spool.error().message));
    return;
  }
  RecoveryFile left = recovery_file_in(place);
  if (!belongs_together(place, left, folder)) {
    all.remarks.push_back(
        fmt::format("{}: skipped: {} is the spool of a run in another folder; if this folder was moved or copied, pass the spool "
                    "folder instead",
                    link.string(), place.string()));
    return;
  }
  left.options.output = fs::absolute(folder);
  all.found.push_back({std::move(*spool), std::move(left.options), link});
}

bool holds_spools(const fs::path& folder) {
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error))
    if (it->path().extension() == ".spool") return true;
  return false;
}

void take_named(const fs::path& folder, Leftovers& all) {
  auto spool = support::OwnedFolder::open(fs::absolute(folder).lexically_normal());
  if (!spool) {
    all.remarks.push_back(spool.error().message);
    return;
  }
  std::error_code error;
  RecoveryFile left = recovery_file_in(folder);
  // The folder may have been unpacked from an archive, whose link leads anywhere: only the folder that was recorded into counts.
  const fs::path output = fs::read_symlink(folder / collect::kRunLink, error);
  const bool recorded_into = !error && left.output && identity_of(output) == left.output;
  left.options.output = recorded_into ? output : fs::current_path();
  all.found.push_back({std::move(*spool), std::move(left.options), {}});
}

}  // namespace

Result<fs::path> leave_for_recovery(const collect::CollectOptions& options) {
  std::string notes = fmt::format("host {}\ntrace_limit {}\nspool_limit {}\nsample_hz {}\n", options.host, options.trace_limit,
                                  options.spool_limit, options.sample_hz);
  if (const auto own = identity_of(options.spool_folder)) notes += fmt::format("spool {} {}\n", own->device, own->inode);
  if (const auto folder = identity_of(options.output)) notes += fmt::format("output {} {}\n", folder->device, folder->inode);
  if (const auto plans = options.settings.find(std::string(analyze::kXlaPlans)); plans != options.settings.end())
    notes += fmt::format("xla_plans {}\n", plans->second);
  // Next to the names themselves, in a folder that only the user can read and that is removed with the run.
  if (options.anonymize) notes += fmt::format("anonymize {} {}\n", (*options.anonymize)[0], (*options.anonymize)[1]);
  if (Status status = support::replace_file(options.spool_folder / collect::kOptionsName, notes); !status)
    return std::unexpected(status.error());
  std::error_code error;
  fs::create_directory_symlink(options.output, options.spool_folder / collect::kRunLink, error);
  fs::path link = options.output / fmt::format("{}{}-{}", kLinkPrefix, options.host, support::random_name());
  fs::create_directory_symlink(options.spool_folder, link, error);
  if (error) return fail(fmt::format("{}: {}", link.string(), error.message()));
  return link;
}

Leftovers find_leftovers(const fs::path& folder) {
  Leftovers all;
  std::error_code error;
  std::vector<fs::path> links;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error))
    if (std::error_code gone; it->path().filename().string().starts_with(kLinkPrefix) && it->is_symlink(gone))
      links.push_back(it->path());
  for (const fs::path& link : links) take_linked(link, folder, all);
  if (links.empty() && holds_spools(folder)) take_named(folder, all);
  return all;
}

}  // namespace vramscope::cli
