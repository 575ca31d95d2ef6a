#include "weft/report/document/document.h"

#include <gtest/gtest.h>

#include <optional>

namespace weft::report {
namespace document_test {

using base::Json;

TEST(Document, ValuesAreAlignedInTextAndWholeInJson) {
  Document document;
  document.line("one rank");
  document.value("step_ms", "step", 12.3456, {1, "ms"}, "median");
  document.json("hidden", 7);
  document.value("tokens_per_second", "tokens/s", 1234.5678, {0});
  document.value("share", "share of peak", 0.5, percent());
  document.value("bytes", "memory", 1536, {.form = Shown::Form::Bytes});
  document.value("loss", "loss", or_null(std::nullopt), {2, "ms"});
  document.value("name", "peer", "PyTorch");
  EXPECT_EQ(document.to_text(),
            "one rank\n"
            "step              12.3 ms  median\n"
            "tokens/s          1235\n"
            "share of peak     50.0 %\n"
            "memory         1.5 KiB\n"
            "loss                 - ms\n"
            "peer           PyTorch\n");
  EXPECT_EQ(document.to_json(),
            Json::parse(R"({"step_ms": 12.3456, "hidden": 7, "tokens_per_second": 1234.5678,
                            "share": 0.5, "bytes": 1536, "loss": null, "name": "PyTorch"})"));
}

TEST(Document, ATableAlignsWordsLeftAndNumbersRight) {
  Document document;
  Table& table = document.table("rows",
                                {{"name", "run"},
                                 {"ms", "ms"},
                                 {"error", "error", percent(1, Shown::Form::Signed)},
                                 {"parts", ""},
                                 {"", "remark"}});
  table.row({"EP2", 10.126, 0.05, Json{{"a", 1}}, "fast"});
  table.note("with a note");
  table.row({"PP2 x EP2", 9, Json(), absent(), Json()});
  table.row({"not shown", 1, 0, 2, ""}, Table::In::JsonOnly);
  EXPECT_EQ(document.to_text(),
            "run           ms   error  remark\n"
            "EP2        10.13  +5.0 %  fast\n"
            "  with a note\n"
            "PP2 x EP2      9       -  -\n");
  const Json rows = document.to_json().at("rows");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], Json::parse(R"({"name": "EP2", "ms": 10.126, "error": 0.05,
                                     "parts": {"a": 1}})"));
  EXPECT_EQ(rows[1], Json::parse(R"({"name": "PP2 x EP2", "ms": 9, "error": null})"));
}

TEST(Document, SectionsAreObjectsAndElementsOfArrays) {
  Document document;
  document.json("fabrics", Json::array());
  for (const char* name : {"free", "slow"}) {
    Document& fabric = document.element("fabrics", name);
    fabric.value("ms", "step", 2, {2, "ms"});
  }
  document.section("peak", "memory").value("weights", "weights", 3);
  document.section("").value("flat", "flat", true);
  EXPECT_EQ(document.to_text(),
            "\nfree\n  step  2 ms\n\nslow\n  step  2 ms\n\nmemory\n  weights  3\nflat  yes\n");
  EXPECT_EQ(document.to_json(),
            Json::parse(R"({"fabrics": [{"ms": 2}, {"ms": 2}], "peak": {"weights": 3},
                            "flat": true})"));
}

TEST(Document, IsMetIfTheBarsOfAllSectionsAre) {
  const Bar met{.name = "share", .value = 0.7, .limit = 0.6, .kind = Bar::Kind::AtLeast};
  const Bar missed{.name = "loss", .value = 0.0301, .limit = 0.03};
  Document document;
  EXPECT_TRUE(document.met());
  document.bars({met});
  EXPECT_TRUE(document.met());
  document.element("fabrics", "free").bars({met, missed});
  EXPECT_FALSE(document.met());
  EXPECT_EQ(document.to_text(),
            "met     share: 0.70, at least 0.60\n\nfree\n"
            "  met     share: 0.70, at least 0.60\n"
            "  NOT MET loss: 0.0301, at most 0.0300\n");
  const Json json = document.to_json();
  EXPECT_EQ(json.at("bars"), Json::array({to_json(met)}));
  EXPECT_EQ(json.at("fabrics")[0].at("bars")[1].at("met"), false);
}

}  // namespace document_test
}  // namespace weft::report
