#include "cli/run/native_symbols.h"

#include <memory>

#include "symbolize/resolver.h"

namespace vramscope::cli {

collect::NativeSymbols native_symbols() {
  return [resolver = std::make_shared<symbolize::Resolver>()](const std::string& path, const std::string& build_id,
                                                              std::uint64_t offset) {
    symbolize::Symbol symbol = resolver->resolve({{path, build_id}, offset});
    return collect::NativeSymbol{std::move(symbol.function), symbol.line};
  };
}

}  // namespace vramscope::cli
