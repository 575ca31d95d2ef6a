#include "weft/plan/published/csv.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::plan {
namespace {

using base::text;

constexpr std::size_t kMostRows = 20000, kMostColumns = 256, kLongestCell = 4096;

class CsvReader {
 public:
  CsvReader(const std::string& content, const std::string& named)
      : content_(content), named_(named) {}

  CsvTable read() {
    CsvTable table;
    while (at_ < content_.size()) {
      CsvRow row = read_row();
      const bool is_blank = std::ranges::all_of(row.cells, [](const std::string& cell) {
        return base::trim(cell).empty();
      });
      if (is_blank) continue;
      if (table.columns.empty()) {
        for (const std::string& cell : row.cells) table.columns.emplace_back(base::trim(cell));
        continue;
      }
      if (row.cells.size() > table.columns.size()) {
        fail(row.line,
             text("{} cells, and the header has {}: quote cells that hold commas",
                  row.cells.size(),
                  table.columns.size()));
      }
      table.rows.push_back(std::move(row));
      if (table.rows.size() > kMostRows) fail(line_, text("more than {} rows", kMostRows));
    }
    if (table.columns.empty()) fail(1, "the file has no header");
    return table;
  }

 private:
  CsvRow read_row() {
    CsvRow row{.line = line_, .cells = {}};
    while (true) {
      row.cells.push_back(read_cell());
      if (row.cells.size() > kMostColumns) fail(row.line, text("more than {} cells", kMostColumns));
      if (at_ < content_.size() && content_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < content_.size()) end_line();
      return row;
    }
  }

  void end_line() {
    if (content_[at_] == '\r') ++at_;
    if (at_ < content_.size() && content_[at_] == '\n') ++at_;
    ++line_;
  }

  std::string read_cell() {
    std::string cell;
    if (at_ < content_.size() && content_[at_] == '"') return read_quoted();
    while (at_ < content_.size() && content_[at_] != ',' && content_[at_] != '\n' &&
           content_[at_] != '\r') {
      put(cell, content_[at_++]);
    }
    return cell;
  }

  std::string read_quoted() {
    const int begin = line_;
    std::string cell;
    ++at_;
    while (true) {
      if (at_ >= content_.size()) fail(begin, "a quote opens a cell and none ends it");
      const char c = content_[at_++];
      if (c == '"') {
        if (at_ < content_.size() && content_[at_] == '"') {
          ++at_;
        } else {
          break;
        }
      }
      if (c == '\n') ++line_;
      put(cell, c);
    }
    const bool ends = at_ >= content_.size() || content_[at_] == ',' || content_[at_] == '\n' ||
                      content_[at_] == '\r';
    if (!ends) fail(begin, "after a quoted cell comes a comma or the end of the line");
    return cell;
  }

  void put(std::string& cell, char c) {
    if (cell.size() >= kLongestCell)
      fail(line_, text("a cell of more than {} bytes", kLongestCell));
    cell.push_back(c);
  }

  [[noreturn]] void fail(int line, const std::string& what) const {
    throw base::ConfigError(text("{}:{}: {}", named_, line, what));
  }

  const std::string& content_;
  const std::string& named_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::string CsvTable::cell(const CsvRow& row, std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  const auto place = static_cast<std::size_t>(found - columns.begin());
  if (found == columns.end() || place >= row.cells.size()) return "";
  return std::string(base::trim(row.cells[place]));
}

CsvTable parse_csv(const std::string& content, const std::string& named) {
  return CsvReader(content, named).read();
}

}  // namespace weft::plan
