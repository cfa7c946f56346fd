#include "importers/importer.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/file.h"
#include "support/gzip.h"
#include "support/memory_budget.h"

namespace vramscope::importers {

namespace {

constexpr std::string_view kOurs = "\x89VRAM";
constexpr std::string_view kGzip = "\x1f\x8b";
// A file of zeros packs a thousandfold; profiles pack tenfold, small ones better.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30, kAlwaysUnpacked = std::uint64_t{64} << 20, kMostPerByte = 100;

std::string known_titles() {
  std::string out;
  for (const Importer* importer : importers()) out += fmt::format("{}{}", out.empty() ? "" : ", ", importer->title);
  return out;
}

}  // namespace

const Importer* importer_for(std::string_view bytes) {
  const auto found = std::ranges::find_if(importers(), [&](const Importer* each) { return each->recognizes(bytes); });
  return found == importers().end() ? nullptr : *found;
}

Result<Opened> open_profile(const std::filesystem::path& file) {
  auto opened = support::ReadFile::open(file);
  if (!opened) return std::unexpected(opened.error());
  if (opened->size() == 0) return fail(fmt::format("{}: the file is empty", file.string()));
  // Holes cost a file nothing, and no tool writes them.
  if (opened->size() > support::memory_for(opened->stored()))
    return fail(fmt::format("{}: most of it is a hole, which no profile has; copy it again", file.string()));
  Opened out{.file = std::move(*opened), .bytes = {}};
  const auto load = [&](std::uint64_t bytes) {
    out.bytes.resize(std::min(bytes, out.file.size()));
    return out.file.read(0, {reinterpret_cast<std::uint8_t*>(out.bytes.data()), out.bytes.size()});
  };
  if (Status status = load(kHead); !status) return std::unexpected(status.error());
  if (out.bytes.starts_with(kOurs))
    return fail(fmt::format("{}: a trace of vramscope already; every verb opens it as it is", file.string()));
  for (const Importer* importer : importers())
    if (importer->stream != nullptr && importer->recognizes(out.bytes)) {
      out.importer = importer;
      out.streamed = true;
      out.bytes.clear();
      return out;
    }
  if (Status status = load(out.file.size()); !status) return std::unexpected(status.error());
  if (out.bytes.starts_with(kGzip)) {
    auto unpacked =
        support::gunzip(out.bytes, std::min<std::uint64_t>(kMostUnpacked, kAlwaysUnpacked + kMostPerByte * out.bytes.size()));
    if (!unpacked) return fail(fmt::format("{}: {}", file.string(), unpacked.error().message));
    out.bytes = std::move(*unpacked);
  }
  out.importer = importer_for(out.bytes);
  if (out.importer == nullptr)
    return fail(
        fmt::format("{}: neither a trace of vramscope nor a profile that it can import: {}", file.string(), known_titles()));
  return out;
}

Status Opened::read(Profile& into) {
  if (importer->stream == nullptr) return importer->read(bytes, into);
  Source source = streamed ? Source(file) : Source(bytes);
  return importer->stream(source, into);
}

Looks looks_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || file.extension() == ".vram") return Looks::ours;
  const auto opened = support::ReadFile::open(file);
  std::string head(opened ? std::min<std::uint64_t>(opened->size(), kOurs.size()) : 0, '\0');
  if (head.size() < kOurs.size() || !opened->read(0, {reinterpret_cast<std::uint8_t*>(head.data()), head.size()}))
    return Looks::ours;
  if (head.starts_with(kGzip)) return Looks::packed;
  return head == kOurs ? Looks::ours : Looks::foreign;
}

Status import_file(const std::filesystem::path& file, const std::filesystem::path& trace) {
  auto opened = open_profile(file);
  if (!opened) return std::unexpected(opened.error());
  Profile profile;
  const auto wrong = [&](const std::string& what) { return fail(fmt::format("{}: {}", file.string(), what)); };
  if (Status status = opened->read(profile); !status) return wrong(status.error().message);
  if (profile.events() == 0) return wrong(fmt::format("{} without any allocation", opened->importer->title));
  opened->bytes = {};
  return profile.write(trace, opened->importer->name, opened->importer->title);
}

}  // namespace vramscope::importers
