#include "weft/plan/published/csv.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::plan {
namespace csv_test {

TEST(Csv, QuotedCellsHoldCommasQuotesAndLines) {
  const CsvTable table = parse_csv("a,b,c\r\n1,\"x, \"\"y\"\"\nz\", 3 \n\n,,\n4,5\n", "t.csv");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.cell(table.rows[0], "b"), "x, \"y\"\nz");
  EXPECT_EQ(table.cell(table.rows[0], "c"), "3");
  EXPECT_EQ(table.cell(table.rows[1], "c"), "");
  EXPECT_EQ(table.cell(table.rows[1], "d"), "");
  EXPECT_EQ(table.rows[1].line, 6);
}

TEST(Csv, WhatIsNoTableIsRefusedWithItsLine) {
  const auto said = [](const std::string& content) -> std::string {
    try {
      parse_csv(content, "t.csv");
    } catch (const base::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said(""), "t.csv:1: the file has no header");
  EXPECT_EQ(said("a,b\n1,\"2\n3\n"), "t.csv:2: a quote opens a cell and none ends it");
  EXPECT_EQ(said("a,b\n1,\"2\"3\n"),
            "t.csv:2: after a quoted cell comes a comma or the end of the line");
  EXPECT_EQ(said("a,b\n1,2,3\n"),
            "t.csv:2: 3 cells, and the header has 2: quote cells that hold commas");
  EXPECT_NE(said("a\n" + std::string(5000, 'x')), "");
  EXPECT_NE(said(std::string(1000, ',')), "");
  std::string many = "a\n";
  for (int i = 0; i < 20002; ++i) many += "1\n";
  EXPECT_NE(said(many), "");
}

}  // namespace csv_test
}  // namespace weft::plan
