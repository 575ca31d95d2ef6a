#include "tests/meta/symbol_support.h"

#include <algorithm>
#include <optional>
#include <regex>

#include "tests/meta/source_support.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace {

using base::text;

// Single name, possibly qualified, with a template argument or call arguments.
struct Mention {
  std::string name;
  bool is_code = false;  // C++ by its form
};

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
// An identifier.
bool begins(char c) { return is_capital(c) || is_small(c) || c == '_'; }
bool goes_on(char c) { return begins(c) || (c >= '0' && c <= '9'); }

// `Engine`, `kFamilies`.
bool is_type_or_constant(std::string_view name) {
  if (name.size() > 1 && name[0] == 'k') name.remove_prefix(1);
  return name.size() > 1 && is_capital(name[0]) && std::ranges::any_of(name, is_small);
}

bool has_open_part(const std::string& name) {
  return std::ranges::any_of(base::split(name, '_'), [](const std::string& part) {
    return !part.empty() && std::ranges::all_of(part, is_capital);
  });
}

std::optional<Mention> mention_in(const std::string& span) {
  static const std::regex form(R"(([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)(?:<[\w:, ]*>)?(\([^()]*\))?)");
  std::smatch found;
  if (!std::regex_match(span, found, form)) return std::nullopt;
  Mention mention{.name = found.str(1)};
  const bool qualified = mention.name.find("::") != std::string::npos;
  mention.is_code = qualified || found[2].matched ||
                    (is_type_or_constant(mention.name) && !has_open_part(mention.name));
  const bool has_underscore = mention.name.find('_') != std::string::npos;
  if (!mention.is_code && !has_underscore) return std::nullopt;
  if (mention.name.starts_with("std::") || has_open_part(mention.name)) return std::nullopt;
  return mention;
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  for (std::string& part : base::split(name, ':')) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Names identifiers_of(std::string_view source) {
  Names names;
  for (auto at = std::ranges::find_if(source, begins); at != source.end();) {
    const auto end = std::find_if_not(at, source.end(), goes_on);
    names.emplace(at, end);
    at = std::find_if(end, source.end(), begins);
  }
  return names;
}

Symbols::Symbols(const std::vector<TextFile>& sources) {
  static constexpr std::string_view opened = "namespace weft::";
  for (const TextFile& source : sources) {
    const std::string code = code_of(source.text);
    Names names = identifiers_of(code);
    for (std::size_t at = code.find(opened); at != code.npos; at = code.find(opened, at + 1)) {
      const auto begin = code.begin() + static_cast<std::ptrdiff_t>(at + opened.size());
      const auto end =
          std::find_if_not(begin, code.end(), [](char c) { return goes_on(c) || c == ':'; });
      if (begin == end) continue;
      namespaces_[parts_of({begin, end}).back()].insert(names.begin(), names.end());
    }
    code_.insert(names.begin(), names.end());
    files_.push_back(std::move(names));
    words_.merge(identifiers_of(uncommented(source.text)));
  }
}

void Symbols::add_words(const Names& words) { words_.insert(words.begin(), words.end()); }

bool Symbols::has_member(const std::string& scope, const std::string& member) const {
  const auto space = namespaces_.find(scope);
  if (space != namespaces_.end()) return space->second.contains(member);
  return std::ranges::any_of(files_, [&](const Names& names) {
    return names.contains(scope) && names.contains(member);
  });
}

bool Symbols::has_code(std::string_view name) const {
  const std::vector<std::string> parts = parts_of(name);
  if (parts.size() == 1) return code_.contains(parts[0]);
  for (std::size_t i = parts[0] == "weft" ? 2 : 1; i < parts.size(); ++i) {
    if (!has_member(parts[i - 1], parts[i])) return false;
  }
  return true;
}

bool Symbols::has_word(std::string_view name) const { return words_.contains(name); }

Complaints symbol_complaints(const Page& page, const Symbols& symbols, const Origins& foreign) {
  Complaints complaints;
  const auto complain = [&](const std::string& name) {
    complaints.push_back(text("{} names '{}', which the code does not have", page.path, name));
  };
  for (const std::string& span : page.spans) {
    const std::optional<Mention> mention = mention_in(span);
    if (!mention || foreign.contains(mention->name)) continue;
    const bool found =
        mention->is_code ? symbols.has_code(mention->name) : symbols.has_word(mention->name);
    if (!found) complain(span);
  }
  for (const Fence& fence : page.fences) {
    if (fence.kind != "cpp") continue;
    for (const std::string& name : identifiers_of(code_of(fence.text))) {
      if (!symbols.has_code(name)) complain(name);
    }
  }
  return complaints;
}

}  // namespace weft::meta
