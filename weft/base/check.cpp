#include "weft/base/check.h"

namespace weft::base {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(text("{}:{}: CHECK({}) failed: {}", file, line, condition, message));
}

}  // namespace weft::base
