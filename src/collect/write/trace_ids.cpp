#include <fmt/format.h>

#include "collect/sample/proc.h"
#include "collect/write/process_trace.h"

namespace vramscope::collect {

trace::StringId TraceIds::text(std::uint32_t id) {
  if (id == 0) return {};
  if (id < texts_.size() && texts_[id]) return *texts_[id];
  const std::string* text = definitions_.text(id);
  if (text == nullptr) return {};
  if (id >= definitions_.dense_texts()) return writer_.string(*text);
  if (id >= texts_.size()) texts_.resize(definitions_.dense_texts());
  return *(texts_[id] = writer_.string(*text));
}

bool TraceIds::stack_missing(std::uint64_t id) const {
  if (id == 0 || stacks_.contains(id)) return false;
  const auto* stack = definitions_.stack(id);
  if (stack == nullptr) return true;
  for (const auto& frame : stack->frames) {
    if (frame.code == 0) continue;
    const auto* code = definitions_.code(frame.code);
    if (code == nullptr || text_missing(code->function) || text_missing(code->file)) return true;
  }
  return false;
}

trace::FrameId TraceIds::frame(const spool::Frame& frame) {
  trace::Frame row;
  if (frame.code != 0) {
    if (const auto* code = definitions_.code(frame.code)) {
      row.function = text(code->function);
      row.file = text(code->file);
      if (const std::string* file = definitions_.text(code->file); sources_ != nullptr && file != nullptr)
        sources_->see(*file, frame.line);
    }
    row.line = frame.line;
  } else if (const auto* module = definitions_.module_at(frame.address)) {
    row.file = text(module->path);
    row.build_id = text(module->build_id);
    row.offset = frame.address - module->base;
    const std::string* const path = definitions_.text(module->path);
    const std::string* const build_id = definitions_.text(module->build_id);
    if (native_symbol_ && path != nullptr && build_id != nullptr) {
      const NativeSymbol symbol = native_symbol_(*path, *build_id, row.offset);
      row.function = writer_.string(symbol.function);
      row.line = symbol.line;
    }
  } else {
    row.offset = frame.address;
  }
  return writer_.frame(row);
}

trace::StackId TraceIds::stack(std::uint64_t id) {
  if (id == 0) return {};
  const auto found = stacks_.find(id);
  if (found != stacks_.end()) return found->second;
  const auto* stack = definitions_.stack(id);
  if (stack == nullptr) return {};
  std::vector<trace::FrameId> frames;
  frames.reserve(stack->frames.size());
  for (const auto& each : stack->frames) frames.push_back(frame(each));
  return stacks_[id] = writer_.stack(id, frames, stack->truncated);
}

bool TraceIds::pool_missing(std::uint8_t index) const {
  return index < spool::kMaxPools && !pools_.contains(index) && text_missing(header_.pools[index].name);
}

trace::PoolId TraceIds::pool(std::uint8_t index) {
  const auto found = pools_.find(index);
  if (found != pools_.end()) return found->second;
  trace::Pool row;
  std::string name = "unknown";
  if (index < spool::kMaxPools) {
    const spool::Pool& pool = header_.pools[index];
    if (const std::string* text = definitions_.text(pool.name); text != nullptr && !text->empty()) name = *text;
    row.device = pool.device;
    row.level = pool.level;
    row.memory = pool.memory;
    row.framework = pool.framework;
  }
  // Two allocators of one name (one was destroyed, or one for each logical device) stay two pools.
  const int nth =
      ++pool_names_[fmt::format("{}/{}/{}/{}", name, row.device, static_cast<int>(row.level), static_cast<int>(row.memory))];
  row.name = writer_.string(nth == 1 ? name : fmt::format("{} #{}", name, nth));
  return pools_[index] = writer_.pool(row);
}

trace::ThreadId TraceIds::thread(std::uint32_t tid) {
  const auto found = threads_.find(tid);
  if (found != threads_.end()) return found->second;
  const trace::StringId name = writer_.string(proc::thread_name(header_.pid, tid));
  return threads_[tid] = writer_.thread({tid, name});
}

}  // namespace vramscope::collect
