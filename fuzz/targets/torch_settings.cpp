// Any text as PYTORCH_CUDA_ALLOC_CONF and as PyTorch's version, both of which a trace contains.
#include <cstdlib>
#include <string_view>

#include "whatif/replay/torch_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using vramscope::whatif::TorchSettings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = TorchSettings::parse(text, TorchSettings::version_of(text));
  if (!settings) {
    if (settings.error().message.empty()) std::abort();
    return 0;
  }
  for (const std::uint64_t bytes : {1u, 511u, 1u << 20, 3u << 20, 1u << 30})
    if (settings->rounded(bytes) < bytes || settings->segment_for(settings->rounded(bytes)) < bytes) std::abort();
  return 0;
}
