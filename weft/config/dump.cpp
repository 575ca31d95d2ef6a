#include "weft/config/dump.h"

#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::config {

std::string to_yaml(const Config& config) {
  std::string yaml;
  std::string section;
  for (const Field& field : fields()) {
    if (field.section != section) {
      section = field.section;
      yaml += section + ":\n";
    }
    yaml += base::text("  {}: {}\n", field.name, value_text(field, config));
  }
  return yaml;
}

base::Json to_json(const Config& config) {
  base::Json all = base::Json::object();
  for (const Field& field : fields()) all[field.section][field.name] = field.get(config);
  return all;
}

}  // namespace weft::config
