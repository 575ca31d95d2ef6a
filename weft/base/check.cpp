#include "weft/base/check.h"

#include <fmt/args.h>

#include "weft/base/check_message.h"

namespace weft::base {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(text("{}:{}: CHECK({}) failed: {}", file, line, condition, message));
}

void check_failed_with(const char* file,
                       int line,
                       const char* condition,
                       std::string_view format,
                       std::initializer_list<CheckValue> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const CheckValue& value : values) {
    switch (value.kind) {
      case CheckValue::Kind::Signed:
        store.push_back(value.number);
        break;
      case CheckValue::Kind::Unsigned:
        store.push_back(static_cast<unsigned long long>(value.number));
        break;
      case CheckValue::Kind::Word:
        store.push_back(value.word);
        break;
    }
  }
  check_failed(file, line, condition, fmt::vformat(format, store));
}

}  // namespace weft::base
