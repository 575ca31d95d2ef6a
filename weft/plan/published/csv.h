// Comma-separated values, with quotes around cells that contain commas or quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::plan {

// Row with its first line number in the file.
struct CsvRow {
  int line = 0;
  std::vector<std::string> cells;
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  // Trimmed cell of a column; empty if the row or the table lacks it.
  std::string cell(const CsvRow& row, std::string_view column) const;
};

// ConfigError with `named` and the line: missing header, unterminated quote, more cells than the
// header, or a table of implausible size.
CsvTable parse_csv(const std::string& content, const std::string& named);

}  // namespace weft::plan
