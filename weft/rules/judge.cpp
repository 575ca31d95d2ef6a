#include "weft/rules/judge.h"

#include <algorithm>
#include <cctype>

#include "weft/base/check.h"
#include "weft/config/field.h"
#include "weft/config/ranges.h"
#include "weft/derive/derived.h"
#include "weft/grid/layout.h"

namespace weft::rules {

using namespace config;
namespace {

// True if a message contains the key as a whole word: model.fp8 is not in "model.fp8_recipe".
bool names_key(std::string_view message, std::string_view key) {
  const auto goes_on = [&](std::size_t at) {
    if (at >= message.size()) return false;
    const auto c = static_cast<unsigned char>(message[at]);
    return std::isalnum(c) != 0 || c == '_';
  };
  for (std::size_t at = message.find(key); at != std::string_view::npos;
       at = message.find(key, at + 1)) {
    if (!goes_on(at + key.size())) return true;
  }
  return false;
}

}  // namespace

Judge::Judge(const Config& config) : config_(config) {
  for (OutOfRange& outside : numbers_out_of_range(config)) {
    errors_.push_back({.id = "W1",
                       .key = outside.key,
                       .from = find_field(outside.key)->get(config),
                       .to = nullptr,
                       .message = std::move(outside.complaint),
                       .fix = std::move(outside.fix)});
    unsound_.push_back(std::move(outside.key));
  }
}

void Judge::apply(const Rule& rule) {
  rule_ = &rule;
  rule.judge(*this);
  rule_ = nullptr;
}

void Judge::report(std::string_view key, std::string message, std::string fix) {
  CHECK(rule_ != nullptr, "no rule is judging");
  const Field* field = find_field(key);
  CHECK(key.empty() || field != nullptr, "rule {} names '{}'", rule_->id, key);
  Finding finding{.id = std::string(rule_->id),
                  .key = std::string(key),
                  .from = field != nullptr ? field->get(config_) : base::Json(nullptr),
                  .to = nullptr,
                  .message = std::move(message),
                  .fix = std::move(fix)};
  switch (rule_->kind) {
    case Kind::Error:
      errors_.push_back(std::move(finding));
      return;
    case Kind::Warning:
    case Kind::Mended:
      warnings_.push_back(std::move(finding));
      return;
    case Kind::Automatic:
      break;
  }
  UNREACHABLE("rule {} sets keys and reports none", rule_->id);
}

void Judge::answer_for(std::string_view key, std::string message, std::string fix) {
  std::erase_if(errors_,
                [&](const Finding& error) { return error.id == "W1" && error.key == key; });
  report(key, std::move(message), std::move(fix));
}

std::optional<Finding> Judge::changed(std::string_view key, std::string_view value) {
  CHECK(rule_ != nullptr, "no rule is judging");
  const Field* field = find_field(key);
  CHECK(field != nullptr, "rule {} names '{}'", rule_->id, key);
  const base::Json before = field->get(config_);
  CHECK(field->set(config_, written_from_text(*field, value)), "{} = '{}'", key, value);
  const base::Json after = field->get(config_);
  if (before == after) return std::nullopt;
  return Finding{.id = std::string(rule_->id),
                 .key = std::string(key),
                 .from = before,
                 .to = after,
                 .message = "",
                 .fix = ""};
}

void Judge::set(std::string_view key,
                std::string_view value,
                std::string message,
                std::string fix) {
  std::optional<Finding> finding = changed(key, value);
  if (!finding) return;
  finding->message = std::move(message);
  finding->fix = std::move(fix);
  switch (rule_->kind) {
    case Kind::Mended:
      warnings_.push_back(*finding);
      automatic_.push_back(std::move(*finding));
      return;
    case Kind::Automatic:
      automatic_.push_back(std::move(*finding));
      return;
    case Kind::Error:
    case Kind::Warning:
      break;
  }
  UNREACHABLE("rule {} reports and sets nothing", rule_->id);
}

void Judge::settle(std::string_view key, std::string_view value, std::string message) {
  std::optional<Finding> finding = changed(key, value);
  if (!finding) return;
  finding->message = std::move(message);
  automatic_.push_back(std::move(*finding));
}

bool Judge::sound(std::initializer_list<std::string_view> keys) const {
  return std::none_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return std::find(unsound_.begin(), unsound_.end(), key) != unsound_.end();
  });
}

bool Judge::sound_section(std::string_view section) const {
  return std::none_of(unsound_.begin(), unsound_.end(), [&](const std::string& key) {
    return key.starts_with(section);
  });
}

bool Judge::is_refused_for(std::string_view key) const {
  return std::ranges::any_of(errors_, [&](const Finding& error) {
    return error.key == key || names_key(error.message, key);
  });
}

bool Judge::on_gpu() const { return derive::is_on_gpu(config_); }

std::optional<std::int64_t> Judge::dp() const {
  if (!sound_section("model.") || !sound({"runtime.world_size"})) return std::nullopt;
  const grid::Layout layout = derive::layout_of(config_);
  if (layout.world % (layout.tp * layout.cp * layout.pp) != 0) return std::nullopt;
  return layout.world / (layout.tp * layout.cp * layout.pp);
}

std::optional<std::int64_t> Judge::micro_batches() const {
  const std::optional<std::int64_t> ranks = dp();
  if (!ranks || !sound({"train.micro_batch_size", "train.global_batch_size"})) return std::nullopt;
  const std::int64_t together = config_.train.micro_batch_size * *ranks;
  if (config_.train.global_batch_size % together != 0) return std::nullopt;
  return config_.train.global_batch_size / together;
}

}  // namespace weft::rules
