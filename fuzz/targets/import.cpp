// Any bytes as a profile of another tool. Recognizing and reading them must be safe; what they read to is of no interest.
// Built once for each file in src/importers/formats/, with VRAMSCOPE_FORMAT as its name.
#include <cstdint>
#include <cstdlib>

#include "importers/importer.h"

namespace vramscope::importers::VRAMSCOPE_FORMAT {
extern const Importer kImporter;
}

using namespace vramscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const importers::Importer& importer = importers::VRAMSCOPE_FORMAT::kImporter;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)importers::importer_for(bytes);
  importers::Profile profile;
  importers::Source source(bytes);
  const Status status = importer.stream != nullptr ? importer.stream(source, profile) : importer.read(bytes, profile);
  if (!status && status.error().message.empty()) std::abort();
  // Events cost their file something: no number in it may stand for many.
  if (profile.events() > 64 + 2 * size) std::abort();
  return 0;
}
