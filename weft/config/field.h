// Table of all config keys, made from the lists in fields/ that also declare the structs.
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

// Effect, in this build, of a key that is not at its default.
struct Support {
  enum class Kind {
    Built,      // works as documented
    Later,      // `text` names a missing part: the run is refused
    With,       // has an effect only if the key `text` is not at its default, else reported as idle
    Idle,       // no effect, for the reason `text`
    IdleOnCpu,  // no effect on CPU ranks
  };
  Kind kind = Kind::Built;
  std::string_view text;
};

// Access to a field's value in a config. Virtual functions compile twice as fast as std::functions.
class FieldAccess {
 public:
  virtual ~FieldAccess() = default;
  virtual base::Json get(const Config& config) const = 0;
  virtual void copy(const Config& from, Config& to) const = 0;
  // False, and the config unchanged, if the written value is not of the field's type.
  virtual bool set(Config& config, const Written& written) const = 0;
};

struct Field {
  std::string section;  // "model"
  std::string name;     // "hidden_size"
  std::string key;      // "model.hidden_size"
  std::string type;     // "integer", "one of fp32, bf16"
  std::string initial;  // default value, as in YAML
  std::string example;  // value shown when the user's value has another type
  std::string meaning;
  std::string unit;
  Shape shape = Shape::Scalar;
  Support support;
  std::unique_ptr<const FieldAccess> access;

  base::Json get(const Config& config) const { return access->get(config); }
  void copy(const Config& from, Config& to) const { access->copy(from, to); }
  bool set(Config& config, const Written& written) const { return access->set(config, written); }
};

// All fields, in the order of Config's sections and their lists.
std::span<const Field> fields();

// Section names, in order.
std::vector<std::string> section_names();

// Field of a key; nullptr: unknown key.
const Field* find_field(std::string_view key);

// Hint for an unknown key: "did you mean 'model.hidden_size'?", or where keys are listed.
std::string key_hint(std::string_view key);

bool is_default(const Field& field, const Config& config);

// Value of a field as YAML and JSON write it.
std::string value_text(const Field& field, const Config& config);

// Parses a typed value of this field: `[1,0,1]`, `null` or a plain word.
Written written_from_text(const Field& field, std::string_view typed);

using base::shown;  // user's text in an error message

}  // namespace weft::config
