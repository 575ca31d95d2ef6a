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
      clean += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML forbids control characters
    }
  }
  return clean;
}

std::string_view style() {
  return "<style>text{font:11px ui-monospace,monospace;fill:#24292f}.t{font:bold 16px sans-serif}"
         ".c{font:bold 13px sans-serif}.r{text-anchor:end}.m{text-anchor:middle}"
         ".paper{fill:#fbfcfd}.lane{stroke:#eceff2}.tick{stroke:#d0d7de}"
         "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}"
         ".lane{stroke:#1c2128}.tick{stroke:#3d444d}}</style>\n";
}

std::vector<std::string> wrapped(std::string_view words, std::size_t letters) {
  std::vector<std::string> lines(1);
  for (const std::string& word : base::split(words, ' ')) {
    std::string left = word;
    const std::size_t room = lines.back().empty() ? 0 : lines.back().size() + 1;
    if (room > 0 && room + left.size() <= letters) {
      lines.back() += ' ' + left;
      continue;
    }
    if (room > 0) lines.emplace_back();
    for (; left.size() > letters; lines.emplace_back()) {
      std::size_t cut = letters;
      // keeps UTF-8 characters whole
      while (cut > 1 && (static_cast<unsigned char>(left[cut]) & 0xc0) == 0x80) --cut;
      lines.back() = left.substr(0, cut);
      left.erase(0, cut);
    }
    lines.back() = left;
  }
  return lines;
}

std::string px(double value) {
  std::string digits = base::text("{:.1f}", value);
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return digits == "-0" ? "0" : digits;
}

}  // namespace weft::trace::svg
