#include "weft/base/visible.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/base/error_context.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::base {
namespace visible_test {

TEST(Visible, WhatSteersATerminalIsAnEscape) {
  EXPECT_EQ(visible("plain, with 'quotes'"), "plain, with 'quotes'");
  EXPECT_EQ(visible("\x1b]0;title\x07"), R"(\x1b]0;title\x07)");
  EXPECT_EQ(visible("a\nb\tc\rd\x7f"), R"(a\nb\tc\rd\x7f)");
  EXPECT_EQ(visible("\xc2\x9b"
                    "31m"),
            R"(\x9b31m)")
      << "a C1 control";
}

TEST(Visible, WhatChangesTheOrderOfTextIsAnEscape) {
  EXPECT_EQ(visible("run\xe2\x80\xae"
                    "txt.exe"),
            R"(run\u202etxt.exe)");
  EXPECT_EQ(visible("\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f"), R"(\u2066\u2069\u200f)");
  EXPECT_EQ(visible("\xef\xbb\xbf\xc2\xad\xd8\x9c"), R"(\ufeff\xad\u061c)");
  EXPECT_EQ(visible("\xf3\xa0\x80\x81"), R"(\U000e0001)");
}

TEST(Visible, OtherLettersStayAndBrokenOnesDoNot) {
  EXPECT_EQ(visible("Größe 模型 \xf0\x9f\x98\x80"), "Größe 模型 \xf0\x9f\x98\x80");
  EXPECT_EQ(visible("\xff"
                    "a\xc3"),
            R"(\xffa\xc3)");
  EXPECT_EQ(visible("\xc0\xaf\xed\xa0\x80"), R"(\xc0\xaf\xed\xa0\x80)") << "overlong, surrogate";
}

TEST(Visible, LinesAndJsonKeepWhatTheyAre) {
  EXPECT_EQ(visible("two\n\tlines\x1b[2J", Escapes::Lines), "two\n\tlines\\x1b[2J");
  const std::string name =
      "a\xe2\x80\xae"
      "b\xf3\xa0\x80\x81\xc2\x9b";
  const std::string json = visible(Json{{"name", name}}.dump(), Escapes::JsonText);
  EXPECT_EQ(json, R"({"name":"a\u202eb\udb40\udc01\u009b"})");
  EXPECT_EQ(Json::parse(json)["name"], name);
}

TEST(Visible, ACutNameEndsWithAWholeCharacter) {
  EXPECT_EQ(shortened("abc", 5), "abc");
  EXPECT_EQ(shortened("ab\xc3\xb6", 3), "ab");
  EXPECT_EQ(shown(std::string(79, 'a') + "\xc3\xb6"), std::string(79, 'a') + "...");
}

std::exception_ptr thrown(const std::function<void()>& act) {
  try {
    act();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

TEST(Told, WhatIsNoErrorOfOursIsABug) {
  EXPECT_EQ(told(thrown([] { throw ConfigError("x=1: use 2"); })), "x=1: use 2");
  EXPECT_EQ(told(thrown([] { throw MissingInput("no file"); })), "no file");
  EXPECT_EQ(told(thrown([] { throw std::bad_alloc(); })), "out of memory");
  for (const auto& error : {thrown([] { (void)std::vector<int>(1).at(1); }),
                            thrown([] { (void)std::optional<int>().value(); }),
                            thrown([] { throw InternalError("a check"); })}) {
    EXPECT_TRUE(told(error).starts_with("a bug in weft: ")) << told(error);
    EXPECT_NE(told(error).find("report it"), std::string::npos);
  }
}

}  // namespace visible_test
}  // namespace weft::base
