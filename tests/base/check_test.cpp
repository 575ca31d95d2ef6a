#include "weft/base/check.h"

#include <gtest/gtest.h>

#include "weft/base/check_message.h"

namespace weft::base {
namespace check_test {

std::string message_of(void (*fails)()) {
  try {
    fails();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Check, SaysTheSameWhereNvccCompilesIt) {
  const auto by_fmt = [] {
    check_failed("a.cu", 7, "rows <= room", text("{} of {}, {}", -1, ~0ull, "f32"));
  };
  const auto by_values = [] {
    check_failed("a.cu", 7, "rows <= room", "{} of {}, {}", -1, ~0ull, std::string_view("f32"));
  };
  EXPECT_EQ(message_of(by_values),
            "a.cu:7: CHECK(rows <= room) failed: -1 of 18446744073709551615, f32");
  EXPECT_EQ(message_of(by_values), message_of(by_fmt));
}

TEST(Check, SaysTheSameWithoutValues) {
  const auto by_values = [] { check_failed_with("a.cu", 7, "fits", "no room", {}); };
  EXPECT_EQ(message_of(by_values), "a.cu:7: CHECK(fits) failed: no room");
}

}  // namespace check_test
}  // namespace weft::base
