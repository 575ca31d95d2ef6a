// One row of a table of published runs.
#pragma once

#include <string>

#include "weft/plan/csv.h"
#include "weft/plan/published.h"

namespace weft::plan {

// Thrown by read_row(): why it cannot be priced.
struct UnusableRow {
  std::string why;
};

PublishedRun read_row(const CsvTable& table, const CsvRow& row, const ModelNamed& model_named);

// In lower case; and of it only letters and digits.
std::string lower_case(std::string_view word);
std::string letters_of(std::string_view name);

}  // namespace weft::plan
