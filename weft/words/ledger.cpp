#include "weft/words/ledger.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/setting.h"

namespace weft::words {

using namespace config;

using base::text;

void Ledger::apply(const Asked& asked) {
  const Field* field = find_field(asked.key);
  CHECK(field != nullptr, "'{}' was read as a key", asked.key);
  if (!asked.value) {
    field->copy(Config(), config_);
  } else {
    const std::size_t before = complaints_.size();
    config::apply({.key = asked.key, .value = *asked.value, .where = place_text(asked)},
                  config_,
                  complaints_);
    if (complaints_.size() > before) return refused_keys_.push_back(asked.key);
  }
  claim(asked, asked.key, field->get(config_));
}

void Ledger::set(const Asked& asked, std::string_view key, std::string_view value) {
  change(asked, key, value);
}

void Ledger::imply(const Asked& asked,
                   std::string_view id,
                   std::string_view key,
                   std::string_view value,
                   const std::string& why) {
  const Change made = change(asked, key, value);
  if (made.from == made.to) return;
  automatic_.push_back({.id = std::string(id),
                        .key = std::string(key),
                        .from = made.from,
                        .to = made.to,
                        .message = text("{}: {}", shown(asked.typed), why),
                        .fix = ""});
}

void Ledger::mend(const Asked& asked,
                  std::string_view id,
                  std::string_view key,
                  std::string_view value,
                  const std::string& why,
                  const std::string& fix) {
  const Change made = change(asked, key, value);
  Finding finding{.id = std::string(id),
                  .key = std::string(key),
                  .from = made.from,
                  .to = made.to,
                  .message = text("{}: {}", shown(asked.typed), why),
                  .fix = fix};
  warnings_.push_back(finding);
  if (made.from != made.to) automatic_.push_back(std::move(finding));
}

bool Ledger::assume(std::string_view key, std::string_view value) {
  const Field* field = find_field(key);
  CHECK(field != nullptr, "'{}' is no key", key);
  return field->set(config_, written_from_text(*field, value));
}

void Ledger::warn(std::string_view id, std::string_view key, std::string message, std::string fix) {
  warnings_.push_back({.id = std::string(id),
                       .key = std::string(key),
                       .from = nullptr,
                       .to = nullptr,
                       .message = std::move(message),
                       .fix = std::move(fix)});
}

void Ledger::leave_out(const Asked& asked, std::string_view why) {
  const std::string what = text("{}: {}", shown(asked.typed), why);
  std::vector<std::string>& all = config_.runtime.unmodelled;
  if (std::ranges::find(all, what) != all.end()) return;
  all.push_back(what);
  warn("H21", "runtime.unmodelled", what, "");
}

bool Ledger::is_set_after(const Asked& asked, std::string_view key) const {
  const auto at = claims_.find(key);
  return at != claims_.end() && at->second.place > asked.place;
}

std::vector<Finding> Ledger::take_automatic() {
  std::erase_if(automatic_, [&](const Finding& finding) {
    return find_field(finding.key)->get(config_) != finding.to;
  });
  return std::move(automatic_);
}

Ledger::Change Ledger::change(const Asked& asked, std::string_view key, std::string_view value) {
  const Field* field = find_field(key);
  CHECK(field != nullptr, "'{}' is no key", key);
  const base::Json from = field->get(config_);
  const Written written = written_from_text(*field, value);
  if (!field->set(config_, written)) {
    complain(text("{}: {}", place_text(asked), type_complaint(*field, written)));
    refused_keys_.push_back(field->key);
    return {.from = from, .to = from};
  }
  const base::Json to = field->get(config_);
  claim(asked, field->key, to);
  return {.from = from, .to = to};
}

void Ledger::claim(const Asked& asked, const std::string& key, const base::Json& value) {
  const auto at = claims_.find(key);
  if (at != claims_.end() && at->second.place != asked.place && at->second.value != value) {
    const Claim& earlier = at->second;
    warnings_.push_back({.id = "W23",
                         .key = key,
                         .from = earlier.value,
                         .to = value,
                         .message = text("{} (word {}) overrides {} (word {}): {} = {}, not {}",
                                         shown(asked.typed),
                                         asked.place,
                                         shown(earlier.typed),
                                         earlier.place,
                                         key,
                                         shown(value.dump()),
                                         shown(earlier.value.dump())),
                         .fix = "give one of them"});
  }
  claims_[key] = {.typed = asked.typed, .place = asked.place, .value = value};
  set_keys_.push_back({.key = key, .typed = asked.typed});
}

}  // namespace weft::words
