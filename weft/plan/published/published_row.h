// One row of a table of published runs.
#pragma once

#include <string>

#include "weft/plan/published/csv.h"
#include "weft/plan/published/published.h"

namespace weft::plan {

// Thrown by read_row(): reason why the row cannot be priced.
struct UnusableRow {
  std::string why;
};

PublishedRun read_row(const CsvTable& table, const CsvRow& row, const ModelNamed& model_named);

// Lower-case form; letters_of keeps only its letters and digits.
std::string lower_case(std::string_view word);
std::string letters_of(std::string_view name);

}  // namespace weft::plan
