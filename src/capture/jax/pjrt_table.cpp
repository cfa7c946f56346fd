#include "capture/jax/pjrt_table.h"

#include <string.h>

namespace vramscope::capture::jax::pjrt {

std::size_t size_of(const unsigned char* table) {
  std::size_t bytes = 0;
  memcpy(&bytes, table, sizeof bytes);
  return bytes;
}

Function function_at(const Table& table, Place place) {
  Function function = nullptr;
  const auto at = static_cast<std::size_t>(place);
  if (at + sizeof function <= size_of(table.real)) memcpy(&function, table.real + at, sizeof function);
  return function;
}

bool ask(const Table& table, Place place, const void* about, std::size_t struct_size, Question& question) {
  const Function function = function_at(table, place);
  if (function == nullptr) return false;
  question = {{struct_size, nullptr}, about, 0, 0};
  Error* const error = function(&question);
  if (error == nullptr) return true;
  Question dropped{{kNoAnswer, nullptr}, error, 0, 0};
  if (const Function destroy = function_at(table, Place::error_destroy)) destroy(&dropped);
  return false;
}

}  // namespace vramscope::capture::jax::pjrt
