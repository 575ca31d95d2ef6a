// Parsed `--vary a.b=x,y,z`: one knob with its values; with --grid several knobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::plan {

struct Knob {
  std::string key;
  std::vector<std::string> values;  // as typed by the user
};

// ConfigError unless the word is `a.b=x,y,z` with a known key.
Knob parse_knob(const std::string& word);

// Splits at commas outside of brackets and quotes: "[a,b],[c]" has two values.
std::vector<std::string> split_values(std::string_view values);

// One run: its overrides, and its name in results.
struct Variant {
  std::string value;
  std::vector<std::string> overrides;
};
inline constexpr const char* kAsConfigured = "as configured";

enum class Sweep { OneKnob, Grid };

// Runs in order, the last knob fastest; without knobs one run as configured. ConfigError: several
// knobs without a grid, a repeated key, or too many runs.
std::vector<Variant> variants_of(const std::vector<Knob>& knobs, Sweep sweep);

}  // namespace weft::plan
