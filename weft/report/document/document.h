// Result of a command, declared once and printed as text or JSON: named values, tables, lines,
// bars and sections, in their order.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "weft/base/json.h"
#include "weft/report/document/bar.h"

namespace weft::report {

// Text form of a number; JSON has the number itself. Integers without a factor have no digits.
struct Shown {
  enum class Form { Plain, Signed, Bytes };
  int digits = 2;
  std::string unit = {};
  double times = 1;  // 100 for percent
  Form form = Form::Plain;
};
// Share as a percentage.
Shown percent(int digits = 1, Shown::Form form = Shown::Form::Plain);

// Value and unit as text. null: "-".
std::string to_text(const base::Json& value, const Shown& shown);

// null: unknown.
base::Json or_null(const std::optional<double>& value, double times = 1);
// Cell whose key is left out of its row's object.
base::Json absent();

struct Column {
  std::string key;      // in JSON; empty: text only
  std::string heading;  // in text; empty: JSON only
  Shown shown = {};
};

// Rows of equal columns; in JSON an array of objects. Columns of words alone are aligned to the
// left.
class Table {
 public:
  enum class In { Both, JsonOnly };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<base::Json> cells, In in = In::Both);
  // Line of text below the last row.
  void note(std::string text);

  std::string to_text() const;
  base::Json to_json() const;

 private:
  struct Row {
    std::vector<base::Json> cells;
    In in = In::Both;
    std::vector<std::string> notes;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

class Document {
 public:
  // Line of text; JSON lacks it.
  void line(std::string text) { items_.emplace_back(std::move(text)); }
  // Number or word with its label, and a remark behind it. Consecutive values are aligned.
  void value(std::string key,
             std::string label,
             base::Json value,
             Shown shown = {},
             std::string remark = {});
  // Member of JSON; text lacks it.
  void json(std::string key, base::Json value);
  // An empty key: text only. References stay valid.
  Table& table(std::string key, std::vector<Column> columns);
  // Part with a heading, whose text is indented. JSON: an object; with an empty key the members of
  // this document.
  Document& section(std::string key, std::string heading = {});
  // Variant that appends an object to the array `key`.
  Document& element(std::string key, std::string heading = {});
  // Bars, in JSON the array "bars".
  void bars(std::vector<Bar> bars);

  // True if all bars are met, in all sections.
  bool met() const;
  std::string to_text() const;
  base::Json to_json() const;

 private:
  struct Value {
    std::string key, label;
    base::Json value;
    Shown shown;
    std::string remark;
  };
  struct Member {
    std::string key;
    base::Json value;
  };
  struct KeyedTable {
    std::string key;
    Table table;
  };
  struct Part {
    enum class Place { Object, Array } place = Place::Object;
    std::string key, heading;
    std::unique_ptr<Document> document;
  };
  using Item = std::variant<std::string, Value, Member, KeyedTable, Part, std::vector<Bar>>;
  using Items = std::deque<Item>;

  static std::string values_text(Items::const_iterator& item, Items::const_iterator end);
  Document& part(Part::Place place, std::string key, std::string heading);

  Items items_;
};

}  // namespace weft::report
