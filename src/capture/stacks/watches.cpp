#include "capture/stacks/watches.h"

#include <cstring>
#include "capture/stacks/shared_cache.h"

#include "record/recorder.h"
#include "record/text.h"

namespace vramscope::stacks {

LayerCall g_layer_calls[kMaxLayerCalls];
std::atomic<std::uint32_t> g_watches{0};
std::atomic<std::uint64_t> g_unnamed_layers{0};

namespace {

struct Watched {
  std::uint64_t code;
  Role role;
  Phase phase;
  char text[47];  // kept as text: its id is another one after a fork
};
constexpr std::uint32_t kMaxWatches = 64;
Watched g_watched[kMaxWatches];
std::atomic<bool> g_adding{false};

SharedCache<1, 14> g_objects;      // address of a layer -> handle of its name
SharedCache<1, 14> g_layer_names;  // hash of a name -> handle
// Names one after another; a handle is the place in it, in words. Grows only: the same names come again and again.
constexpr std::size_t kNameBytes = std::size_t{1} << 20;
alignas(8) char g_names[kNameBytes];
std::atomic<std::size_t> g_names_used{8};  // handle 0 = none

std::uint64_t object_key(std::uint64_t object) { return fold(object ^ kHash0, kHash1); }

std::uint32_t keep_name(const char* name) {
  const std::size_t bytes = std::strlen(name);
  if (bytes == 0 || bytes > 400) return 0;
  const std::uint64_t key = hash_bytes(name, bytes, kHash2);
  decltype(g_layer_names)::Entry known;
  if (g_layer_names.find(key, known)) return static_cast<std::uint32_t>(known.value[0]);
  const std::size_t room = (bytes + 8) & ~std::size_t{7};
  const std::size_t at = g_names_used.fetch_add(room, std::memory_order_relaxed);
  if (at + room > kNameBytes) {
    g_names_used.store(kNameBytes, std::memory_order_relaxed);
    return 0;
  }
  std::memcpy(g_names + at, name, bytes + 1);
  const auto handle = static_cast<std::uint32_t>(at / 8);
  g_layer_names.put(key, {{handle}});
  return handle;
}

const Watched* find(std::uint64_t code) {
  const std::uint32_t count = g_watches.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (g_watched[i].code == code) return &g_watched[i];
  }
  return nullptr;
}

}  // namespace

bool watch(const Watch& entry) {
  if (entry.code == 0 || g_adding.exchange(true, std::memory_order_acquire)) return false;
  bool done = false;
  const std::uint32_t slot = g_watches.load(std::memory_order_relaxed);
  if (find(entry.code) != nullptr) {
    done = true;
  } else if (slot < kMaxWatches) {
    Watched& watched = g_watched[slot];
    watched = {entry.code, entry.role, entry.phase, {}};
    for (std::size_t i = 0; entry.text != nullptr && entry.text[i] != '\0' && i + 1 < sizeof watched.text; ++i)
      watched.text[i] = entry.text[i];
    g_watches.store(slot + 1, std::memory_order_release);
    done = true;
  }
  if (done && entry.role == Role::layer_call) {
    done = false;
    for (LayerCall& call : g_layer_calls) {
      const std::uint64_t there = call.code.load(std::memory_order_relaxed);
      if (there != 0 && there != entry.code) continue;
      call.self_slot.store(entry.self_slot, std::memory_order_relaxed);
      call.self_in_cell.store(entry.self_in_cell, std::memory_order_relaxed);
      call.code.store(entry.code, std::memory_order_release);
      done = true;
      break;
    }
  }
  g_adding.store(false, std::memory_order_release);
  return done;
}

void name_object(std::uint64_t object, const char* name) {
  g_objects.put(object_key(object), {{keep_name(name != nullptr ? name : "")}});  // none: an older one does not hold any more
}

std::uint32_t keep_layer(const char* name) { return keep_name(name); }

const char* layer_text(std::uint32_t layer) {
  return layer != 0 && layer < kNameBytes / 8 ? g_names + std::size_t{layer} * 8 : "";
}

std::uint32_t intern_op(std::uint32_t layer, const char* plumbing) {
  const char* const name = layer_text(layer);
  if (*plumbing == '\0') return record::intern(name);
  record::Text<512> text;
  if (*name != '\0') {
    const char* const type = std::strrchr(name, '/');
    const char* const end = type != nullptr ? type : name + std::strlen(name);
    char layer_only[401] = {};
    std::memcpy(layer_only, name, static_cast<std::size_t>(end - name));
    text.add(layer_only).add("/");
  }
  text.add(plumbing);
  return record::intern(text.c_str(), text.size());
}

std::uint32_t intern_part(std::uint32_t layer, std::uint32_t part) {
  const char* inner = layer_text(part);
  if (*inner != '.') return record::intern(inner);
  const char* const outer = layer_text(layer);
  const char* const type = std::strrchr(outer, '/');
  const std::size_t bytes = type != nullptr ? static_cast<std::size_t>(type - outer) : 0;
  // The whole model is called by its type alone: its parts begin the path.
  const bool whole_model = bytes == 0 || (std::strlen(type + 1) == bytes && std::strncmp(outer, type + 1, bytes) == 0);
  if (whole_model) return record::intern(inner + 1);
  char layer_only[401] = {};
  std::memcpy(layer_only, outer, bytes);
  record::Text<801> text;
  text.add(layer_only).add(inner);
  return record::intern(text.c_str(), text.size());
}

void LabelReader::add(const PythonLayout& layout, const PythonFrame& frame, std::uint32_t part) {
  if (part != 0) {
    if (!phase_decided_ && labels_.phase == Phase::none) labels_.phase = Phase::forward;
    if (labels_.layer == 0 && labels_.part == 0) labels_.part = part;
    return;
  }
  const Watched* const watched = find(frame.code);
  if (watched == nullptr) return;
  switch (watched->role) {
    case Role::layer_call:
      if (!phase_decided_ && labels_.phase == Phase::none) labels_.phase = Phase::forward;
      if (labels_.layer == 0) {
        decltype(g_objects)::Entry entry;
        if (g_objects.find(object_key(layer_object(layout, frame)), entry) && entry.value[0] != 0) {
          labels_.layer = static_cast<std::uint32_t>(entry.value[0]);
        } else {
          g_unnamed_layers.fetch_add(1, std::memory_order_relaxed);
        }
      }
      break;
    case Role::phase:
      // The innermost one counts: Lightning runs forward and backward inside optimizer.step(closure).
      if (!phase_decided_ && labels_.phase == Phase::none) labels_.phase = watched->phase;
      if (!phase_decided_ && labels_.phase == Phase::forward && watched->phase == Phase::checkpointed)
        labels_.phase = watched->phase;
      phase_decided_ = true;
      break;
    case Role::recompute:
      if (phase_decided_ && labels_.phase == Phase::backward) break;  // what ran again is behind: its gradients are computed
      if (!phase_decided_) recompute_ = true;
      if (*labels_.plumbing == '\0') labels_.plumbing = watched->text;
      break;
    case Role::op:
      serving_ = true;
      if (*labels_.plumbing == '\0') labels_.plumbing = watched->text;
      break;
    case Role::none:
      break;
  }
}

Labels LabelReader::finish() const {
  Labels labels = labels_;
  if (serving_ && labels.phase == Phase::forward) labels.phase = Phase::serving;
  if (recompute_) labels.phase = Phase::backward;
  return labels;
}

}  // namespace vramscope::stacks
