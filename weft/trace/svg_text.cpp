#include "weft/trace/svg_text.h"

#include "weft/base/text.h"

namespace weft::trace::svg {

std::string escape(std::string_view raw) {
  std::string clean;
  for (const char c : raw) {
    if (c == '&') {
      clean += "&amp;";
    } else if (c == '<') {
      clean += "&lt;";
    } else if (c == '>') {
      clean += "&gt;";
    } else if (c == '"') {
      clean += "&quot;";
    } else {
      clean += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML takes no control characters
    }
  }
  return clean;
}

std::string px(double value) {
  std::string digits = base::text("{:.1f}", value);
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return digits == "-0" ? "0" : digits;
}

}  // namespace weft::trace::svg
