// The table of every config key, made from the same lists in fields/ that declare the structs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/config/config.h"

namespace weft::config {

// What this build does with a key whose value is not the default.
struct Support {
  enum class Kind {
    Built,  // it does what the key says
    Later,  // `text` names the part that is missing: the run is refused
    With,   // matters only where the key `text` is not at its default; else it is said to be idle
    Idle,   // has no effect, for the reason `text`
    IdleOnCpu,  // has none on CPU ranks
  };
  Kind kind = Kind::Built;
  std::string_view text;
};

// The value of a field in a config: virtual functions, which take the compiler half the time of as
// many std::functions.
class FieldAccess {
 public:
  virtual ~FieldAccess() = default;
  virtual base::Json get(const Config& config) const = 0;
  virtual void copy(const Config& from, Config& to) const = 0;
  // False, and the config unchanged, when what is written is not of the field's type.
  virtual bool set(Config& config, const Written& written) const = 0;
};

struct Field {
  std::string section;  // "model"
  std::string name;     // "hidden_size"
  std::string key;      // "model.hidden_size"
  std::string type;     // "integer", "one of fp32, bf16"
  std::string initial;  // the default, as it is written in YAML
  std::string example;  // a value to show when the user's is not of the type
  std::string meaning;
  std::string unit;
  Shape shape = Shape::Scalar;
  Support support;
  std::unique_ptr<const FieldAccess> access;

  base::Json get(const Config& config) const { return access->get(config); }
  void copy(const Config& from, Config& to) const { access->copy(from, to); }
  bool set(Config& config, const Written& written) const { return access->set(config, written); }
};

// Every field, in the order of the sections of Config and of the lists.
std::span<const Field> fields();

// The section names, in order.
std::vector<std::string> section_names();

// The field of a key, or null.
const Field* find_field(std::string_view key);

// "did you mean 'model.hidden_size'?" for an unknown key, or where keys are listed.
std::string key_hint(std::string_view key);

bool is_default(const Field& field, const Config& config);

// The value of a field as YAML (and JSON) writes it.
std::string value_text(const Field& field, const Config& config);

// `[1,0,1]`, `null` or a plain word as the user typed it for this field.
Written written_from_text(const Field& field, std::string_view typed);

using base::shown;  // a user's text in an error message

}  // namespace weft::config
