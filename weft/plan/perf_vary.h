// What `--vary a.b=x,y,z` asks for: one knob and its values, or with --grid several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::plan {

struct Knob {
  std::string key;
  std::vector<std::string> values;  // as the user typed them
};

// ConfigError where the word is no `a.b=x,y,z` of a known key.
Knob parse_knob(const std::string& word);

// At the commas that no bracket or quote encloses: "[a,b],[c]" is two.
std::vector<std::string> split_values(std::string_view values);

// One run: the overrides that make it, and what it is called in results.
struct Variant {
  std::string value;
  std::vector<std::string> overrides;
};
inline constexpr const char* kAsConfigured = "as configured";

enum class Sweep { OneKnob, Grid };

// The runs in order, the last knob fastest; without knobs one, as configured. ConfigError for
// several knobs without a grid, a key twice, or more runs than anyone waits for.
std::vector<Variant> variants_of(const std::vector<Knob>& knobs, Sweep sweep);

}  // namespace weft::plan
