// Check that a picture can be opened.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace weft::trace {

// Complains about unbalanced tags and unescaped text.
inline std::string find_fault(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < xml.size()) {
    const std::size_t tag = xml.find('<', at);
    const std::string words = xml.substr(at, tag - at);
    if (words.find('>') != words.npos) return "a bare > in '" + words + "'";
    for (std::size_t i = words.find('&'); i != words.npos; i = words.find('&', i + 1)) {
      if (words.find(';', i) == words.npos) return "a bare & in '" + words + "'";
    }
    if (tag == xml.npos) break;
    if (xml.compare(tag, 4, "<!--") == 0) {
      at = xml.find("-->", tag);
      if (at == xml.npos) return "a comment without an end";
      at += 3;
      continue;
    }
    const std::size_t end = xml.find('>', tag);
    if (end == xml.npos) return "a tag without an end";
    const std::string inside = xml.substr(tag + 1, end - tag - 1);
    if (std::ranges::count(inside, '"') % 2 != 0) return "quotes in <" + inside + ">";
    if (inside.find('<') != inside.npos) return "a bare < in <" + inside + ">";
    const std::string name = inside.substr(0, inside.find_first_of(" /"));
    if (inside.front() == '/') {
      if (open.empty() || open.back() != inside.substr(1)) return "</" + inside.substr(1) + ">";
      open.pop_back();
    } else if (inside.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

}  // namespace weft::trace
