// CHECK(condition, "format", args...): a failed check is a bug of ours. Throws InternalError with
// file and line.
#pragma once

#ifdef __CUDACC__

#include "weft/base/check_message.h"

#define WEFT_CHECK_FAILED(condition, ...) \
  ::weft::base::check_failed(__FILE__, __LINE__, condition, __VA_ARGS__)

#else

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               const std::string& message);

}  // namespace weft::base

#define WEFT_CHECK_FAILED(condition, ...) \
  ::weft::base::check_failed(__FILE__, __LINE__, condition, ::weft::base::text(__VA_ARGS__))

#endif

#define CHECK(condition, ...)                     \
  do {                                            \
    if (!(condition)) [[unlikely]] {              \
      WEFT_CHECK_FAILED(#condition, __VA_ARGS__); \
    }                                             \
  } while (false)

// Marks a point that only a bug can reach; the compiler knows that control ends there.
#define UNREACHABLE(...) WEFT_CHECK_FAILED("unreachable", __VA_ARGS__)
