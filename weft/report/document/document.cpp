#include "weft/report/document/document.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::report {
namespace {

template <typename... Cases>
struct Visitor : Cases... {
  using Cases::operator()...;
};

constexpr std::size_t kIndent = 2;

std::string number_text(const base::Json& value, const Shown& shown) {
  if (value.is_null() || value.is_discarded()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  CHECK(value.is_number(), "{} has no text", value.dump());
  if (value.is_number_integer() && shown.times == 1 && shown.form != Shown::Form::Bytes) {
    return value.dump();
  }
  const double number = value.get<double>() * shown.times;
  switch (shown.form) {
    case Shown::Form::Plain:
      return base::text("{:.{}f}", number, shown.digits);
    case Shown::Form::Signed:
      return base::text("{:+.{}f}", number, shown.digits);
    case Shown::Form::Bytes:
      return base::human_bytes(number);
  }
  UNREACHABLE("form {}", static_cast<int>(shown.form));
}

bool is_word(const base::Json& value) { return value.is_string() || value.is_boolean(); }

// Appends a line without trailing blanks.
void add_line(std::string& all, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  all += line + '\n';
}

std::string indented(const std::string& body) {
  std::string all;
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = body.find('\n', begin) + 1;
    if (end > begin + 1) all.append(kIndent, ' ');
    all.append(body, begin, end - begin);
    begin = end;
  }
  return all;
}

}  // namespace

Shown percent(int digits, Shown::Form form) {
  return {.digits = digits, .unit = "%", .times = 100, .form = form};
}

std::string to_text(const base::Json& value, const Shown& shown) {
  const std::string number = number_text(value, shown);
  return shown.unit.empty() || !value.is_number() ? number : number + ' ' + shown.unit;
}

base::Json or_null(const std::optional<double>& value, double times) {
  return value ? base::Json(*value * times) : base::Json();
}

base::Json absent() { return base::Json(base::Json::value_t::discarded); }

void Table::row(std::vector<base::Json> cells, In in) {
  CHECK(cells.size() == columns_.size(), "{} cells in {} columns", cells.size(), columns_.size());
  rows_.push_back({.cells = std::move(cells), .in = in, .notes = {}});
}

void Table::note(std::string text) { rows_.back().notes.push_back(std::move(text)); }

std::string Table::to_text() const {
  struct Drawn {
    std::size_t column = 0, width = 0;
    bool has_word = false, has_number = false;

    bool is_left() const { return has_word && !has_number; }
  };
  std::vector<Drawn> drawn;
  const auto cell = [&](const Row& row, std::size_t column) {
    return report::to_text(row.cells[column], columns_[column].shown);
  };
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].heading.empty()) continue;
    Drawn column{.column = i, .width = columns_[i].heading.size()};
    for (const Row& row : rows_) {
      if (row.in == In::JsonOnly) continue;
      column.width = std::max(column.width, cell(row, i).size());
      column.has_word = column.has_word || is_word(row.cells[i]);
      column.has_number = column.has_number || row.cells[i].is_number();
    }
    drawn.push_back(column);
  }
  std::string all;
  const auto add = [&](const auto& text_of) {
    std::string line;
    for (const Drawn& column : drawn) {
      const std::string shown = text_of(column.column);
      line += column.is_left() ? base::text("{:<{}}  ", shown, column.width)
                               : base::text("{:>{}}  ", shown, column.width);
    }
    add_line(all, std::move(line));
  };
  add([&](std::size_t column) { return columns_[column].heading; });
  for (const Row& row : rows_) {
    if (row.in == In::JsonOnly) continue;
    add([&](std::size_t column) { return cell(row, column); });
    for (const std::string& note : row.notes) add_line(all, "  " + note);
  }
  return all;
}

base::Json Table::to_json() const {
  base::Json all = base::Json::array();
  for (const Row& row : rows_) {
    base::Json object = base::Json::object();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].key.empty() || row.cells[i].is_discarded()) continue;
      object[columns_[i].key] = row.cells[i];
    }
    all.push_back(std::move(object));
  }
  return all;
}

void Document::value(std::string key,
                     std::string label,
                     base::Json value,
                     Shown shown,
                     std::string remark) {
  items_.emplace_back(Value{std::move(key),
                            std::move(label),
                            std::move(value),
                            std::move(shown),
                            std::move(remark)});
}

void Document::json(std::string key, base::Json value) {
  items_.emplace_back(Member{std::move(key), std::move(value)});
}

Table& Document::table(std::string key, std::vector<Column> columns) {
  items_.emplace_back(KeyedTable{std::move(key), Table(std::move(columns))});
  return std::get<KeyedTable>(items_.back()).table;
}

Document& Document::part(Part::Place place, std::string key, std::string heading) {
  items_.emplace_back(
      Part{place, std::move(key), std::move(heading), std::make_unique<Document>()});
  return *std::get<Part>(items_.back()).document;
}

Document& Document::section(std::string key, std::string heading) {
  return part(Part::Place::Object, std::move(key), std::move(heading));
}

Document& Document::element(std::string key, std::string heading) {
  return part(Part::Place::Array, std::move(key), std::move(heading));
}

void Document::bars(std::vector<Bar> bars) { items_.emplace_back(std::move(bars)); }

bool Document::met() const {
  return std::ranges::all_of(items_, [](const Item& item) {
    if (const auto* part = std::get_if<Part>(&item)) return part->document->met();
    const auto* bars = std::get_if<std::vector<Bar>>(&item);
    return bars == nullptr || std::ranges::all_of(*bars, &Bar::met);
  });
}

// Values up to the next item of text; `item` ends at it.
std::string Document::values_text(Items::const_iterator& item, Items::const_iterator end) {
  std::vector<const Value*> values;
  for (; item != end; ++item) {
    if (const auto* value = std::get_if<Value>(&*item)) {
      if (!value->label.empty()) values.push_back(value);
    } else if (!std::holds_alternative<Member>(*item)) {
      break;
    }
  }
  std::size_t label = 0, number = 0, unit = 0;
  for (const Value* value : values) {
    label = std::max(label, value->label.size());
    if (is_word(value->value)) continue;
    number = std::max(number, number_text(value->value, value->shown).size());
    unit = std::max(unit, value->shown.unit.size());
  }
  std::string all;
  for (const Value* value : values) {
    const std::string shown = number_text(value->value, value->shown);
    add_line(all,
             is_word(value->value)
                 ? base::text("{:<{}}  {}  {}", value->label, label, shown, value->remark)
                 : base::text("{:<{}}  {:>{}} {:<{}}  {}",
                              value->label,
                              label,
                              shown,
                              number,
                              value->shown.unit,
                              unit,
                              value->remark));
  }
  return all;
}

std::string Document::to_text() const {
  std::string all;
  for (auto item = items_.begin(); item != items_.end();) {
    if (std::holds_alternative<Value>(*item)) {
      all += values_text(item, items_.end());
      continue;
    }
    std::visit(Visitor{[&](const std::string& line) { add_line(all, line); },
                       [](const Value&) {},
                       [](const Member&) {},
                       [&](const KeyedTable& one) { all += one.table.to_text(); },
                       [&](const Part& part) {
                         const std::string body = part.document->to_text();
                         if (part.heading.empty()) {
                           all += body;
                           return;
                         }
                         all += '\n' + part.heading + '\n' + indented(body);
                       },
                       [&](const std::vector<Bar>& bars) {
                         for (const Bar& bar : bars) all += report::to_text(bar) + '\n';
                       }},
               *item);
    ++item;
  }
  return all;
}

base::Json Document::to_json() const {
  base::Json all = base::Json::object();
  const auto put = [&](const std::string& key, base::Json value) {
    if (!key.empty()) all[key] = std::move(value);
  };
  for (const Item& item : items_) {
    std::visit(Visitor{[](const std::string&) {},
                       [&](const Value& value) { put(value.key, value.value); },
                       [&](const Member& member) { put(member.key, member.value); },
                       [&](const KeyedTable& one) { put(one.key, one.table.to_json()); },
                       [&](const Part& part) {
                         base::Json body = part.document->to_json();
                         if (part.place == Part::Place::Array) {
                           all[part.key].push_back(std::move(body));
                         } else if (part.key.empty()) {
                           all.update(body);
                         } else {
                           put(part.key, std::move(body));
                         }
                       },
                       [&](const std::vector<Bar>& bars) {
                         base::Json& list = all["bars"] = base::Json::array();
                         for (const Bar& bar : bars) list.push_back(report::to_json(bar));
                       }},
               item);
  }
  return all;
}

}  // namespace weft::report
