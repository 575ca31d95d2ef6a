// Tables of text: comma-separated values, quoted where they hold commas or quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::plan {

// A row and the line of the file it begins on.
struct CsvRow {
  int line = 0;
  std::vector<std::string> cells;
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  // The cell of a column, trimmed; empty where the row or the table has none.
  std::string cell(const CsvRow& row, std::string_view column) const;
};

// ConfigError naming `named` and the line: no header, a quote that does not end, a row with more
// cells than the header, more rows or longer cells than any such table has.
CsvTable parse_csv(const std::string& content, const std::string& named);

}  // namespace weft::plan
