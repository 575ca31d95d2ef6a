// CHECK(condition, "format", args...): our bug if it fails; throws InternalError with file and
// line.
#pragma once

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               const std::string& message);

}  // namespace weft::base

#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) [[unlikely]] {                                                               \
      ::weft::base::check_failed(__FILE__, __LINE__, #condition, ::weft::base::text(__VA_ARGS__)); \
    }                                                                                              \
  } while (false)

// Where no path leads unless we have a bug; the compiler knows that nothing follows it.
#define UNREACHABLE(...) \
  ::weft::base::check_failed(__FILE__, __LINE__, "unreachable", ::weft::base::text(__VA_ARGS__))
