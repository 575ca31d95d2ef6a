#include "weft/config/key_table.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::config {
namespace {

// Escapes bars, which would end the table cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string meaning_and_unit(const Field& field) {
  return field.unit.empty() ? field.meaning : base::text("{} ({})", field.meaning, field.unit);
}

}  // namespace

std::string text_reference(std::string_view part) {
  const auto is_asked = [&](const Field& field) {
    return std::string_view(field.key).find(part) != std::string_view::npos;
  };
  std::size_t width = 0;
  for (const Field& field : fields()) {
    if (is_asked(field)) width = std::max(width, field.key.size() + field.initial.size() + 1);
  }
  std::string all;
  std::string section;
  for (const Field& field : fields()) {
    if (!is_asked(field)) continue;
    if (!all.empty() && field.section != section) all += '\n';
    section = field.section;
    const std::string assignment = base::text("{}={}", field.key, field.initial);
    all += base::text("{:<{}}  {} [{}]\n", assignment, width, meaning_and_unit(field), field.type);
  }
  return all;
}

std::string markdown_reference() {
  std::string all =
      "# Config keys\n\n"
      "Every key of a recipe or an override (`a.b=c`), its default and its meaning. This page is\n"
      "`weft config --markdown`; a test holds it equal.\n";
  std::string section;
  for (const Field& field : fields()) {
    if (field.section != section) {
      section = field.section;
      all +=
          base::text("\n## {}\n\n| key | default | type | meaning |\n|---|---|---|---|\n", section);
    }
    all += base::text("| `{}` | `{}` | {} | {} |\n",
                      field.key,
                      field.initial,
                      cell(field.type),
                      cell(meaning_and_unit(field)));
  }
  return all;
}

}  // namespace weft::config
