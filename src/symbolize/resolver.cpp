#include "symbolize/resolver.h"

#include <fmt/format.h>

#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace vramscope::symbolize {

namespace {

struct Loaded {
  std::mutex lock;  // protects symbols and answers: debug information is not thread-safe
  std::optional<ModuleSymbols> symbols;
  std::string complaint;
  std::unordered_map<std::uint64_t, Symbol> answers;  // the same few thousand addresses come again and again
};

std::string key_of(const Module& module) { return fmt::format("{} {}", module.build_id, module.path); }

std::shared_ptr<Loaded> load(const Module& module) {
  auto out = std::make_shared<Loaded>();
  auto symbols = ModuleSymbols::load(module.path, module.build_id);
  if (symbols)
    out->symbols = std::move(*symbols);
  else
    out->complaint = symbols.error().message;
  return out;
}

}  // namespace

struct Resolver::State {
  mutable std::mutex lock;
  std::unordered_map<std::string, std::shared_future<std::shared_ptr<Loaded>>> modules;

  std::shared_future<std::shared_ptr<Loaded>> loading(const Module& module) {
    const std::scoped_lock hold(lock);
    auto& entry = modules[key_of(module)];
    if (!entry.valid()) entry = std::async(std::launch::async, load, module).share();
    return entry;
  }
};

Resolver::Resolver() : state_(std::make_unique<State>()) {}
Resolver::~Resolver() = default;

void Resolver::prepare(const Module& module) { state_->loading(module); }

Symbol Resolver::resolve(const Address& address) {
  const auto loaded = state_->loading(address.module).get();
  const std::scoped_lock hold(loaded->lock);
  if (!loaded->symbols) return {};
  const auto [answer, fresh] = loaded->answers.try_emplace(address.offset);
  // A call is often the last instruction of a function that does not return: its return address is then in the next function.
  if (fresh) answer->second = loaded->symbols->find(address.offset - 1);
  return answer->second;
}

std::vector<Symbol> Resolver::resolve(std::span<const Address> addresses) {
  for (const Address& address : addresses) prepare(address.module);
  std::vector<Symbol> out;
  out.reserve(addresses.size());
  for (const Address& address : addresses) out.push_back(resolve(address));
  return out;
}

std::vector<std::string> Resolver::complaints() const {
  const std::scoped_lock hold(state_->lock);
  std::vector<std::string> out;
  for (const auto& [key, module] : state_->modules)
    if (const auto& complaint = module.get()->complaint; !complaint.empty()) out.push_back(complaint);
  return out;
}

}  // namespace vramscope::symbolize
