#include "weft/config/field.h"

#include <algorithm>

namespace weft::config {
namespace {

template <typename Section>
struct SectionOf {
  using Type = Section;
  const char* name;
  Section Config::*member;
};
template <typename Section>
SectionOf(const char*, Section Config::*) -> SectionOf<Section>;

template <typename Section, typename T>
Field make_field(const SectionOf<Section>& section,
                 T Section::*member,
                 const char* name,
                 const char* meaning,
                 const char* unit,
                 Support support) {
  using Codec = FieldCodec<T>;
  Field field{
      .section = section.name,
      .name = name,
      .key = base::text("{}.{}", section.name, name),
      .type = Codec::type(),
      .initial = {},
      .example = Codec::example(),
      .meaning = meaning,
      .unit = unit,
      .shape = Codec::shape,
      .support = support,
      .get = [of = section.member,
              member](const Config& config) { return Codec::json(config.*of.*member); },
      .copy = [of = section.member, member](const Config& from,
                                            Config& to) { to.*of.*member = from.*of.*member; },
      .set =
          [of = section.member, member](Config& config, const Written& written) {
            // Where Megatron Bridge has "unset" beside true and false, unset is the default.
            if (std::is_same_v<T, bool> && std::holds_alternative<std::monostate>(written)) {
              config.*of.*member = Section().*member;
              return true;
            }
            auto value = Codec::parse(written);
            if (value) config.*of.*member = std::move(*value);
            return value.has_value();
          }};
  field.initial = value_text(field, Config());
  return field;
}

// The words of the last column of the lists.
Support built() { return {}; }
Support later(std::string_view part) { return {.kind = Support::Kind::Later, .text = part}; }
Support with(std::string_view key) { return {.kind = Support::Kind::With, .text = key}; }
Support idle(std::string_view why) { return {.kind = Support::Kind::Idle, .text = why}; }

std::vector<Field> make_fields() {
  std::vector<Field> all;
#define WEFT_FIELD(type, name, initial, meaning, unit, support) \
  all.push_back(make_field(section, &decltype(section)::Type::name, #name, meaning, unit, support));
  {
    const SectionOf section{"model", &Config::model};
#include "weft/config/fields/model.def"
#include "weft/config/fields/model_memory.def"
#include "weft/config/fields/model_moe.def"
#include "weft/config/fields/model_parallel.def"
#include "weft/config/fields/model_precision.def"
  }
  {
    const SectionOf section{"comm_overlap", &Config::comm_overlap};
#include "weft/config/fields/comm_overlap.def"
  }
  {
    const SectionOf section{"ddp", &Config::ddp};
#include "weft/config/fields/ddp.def"
  }
  {
    const SectionOf section{"train", &Config::train};
#include "weft/config/fields/train.def"
  }
  {
    const SectionOf section{"optimizer", &Config::optimizer};
#include "weft/config/fields/optimizer.def"
  }
  {
    const SectionOf section{"scheduler", &Config::scheduler};
#include "weft/config/fields/scheduler.def"
  }
  {
    const SectionOf section{"dataset", &Config::dataset};
#include "weft/config/fields/dataset.def"
  }
  {
    const SectionOf section{"tokenizer", &Config::tokenizer};
#include "weft/config/fields/tokenizer.def"
  }
  {
    const SectionOf section{"rng", &Config::rng};
#include "weft/config/fields/rng.def"
  }
  {
    const SectionOf section{"rerun_state_machine", &Config::rerun_state_machine};
#include "weft/config/fields/rerun_state_machine.def"
  }
  {
    const SectionOf section{"checkpoint", &Config::checkpoint};
#include "weft/config/fields/checkpoint.def"
  }
  {
    const SectionOf section{"logger", &Config::logger};
#include "weft/config/fields/logger.def"
  }
  {
    const SectionOf section{"runtime", &Config::runtime};
#include "weft/config/fields/runtime.def"
  }
  {
    const SectionOf section{"fabric", &Config::fabric};
#include "weft/config/fields/fabric.def"
  }
  {
    const SectionOf section{"hardware", &Config::hardware};
#include "weft/config/fields/hardware.def"
  }
#undef WEFT_FIELD
  return all;
}

std::string_view unquoted(std::string_view word) {
  const bool quoted = word.size() >= 2 && word.front() == word.back() &&
                      (word.front() == '"' || word.front() == '\'');
  return quoted ? word.substr(1, word.size() - 2) : word;
}

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> all = make_fields();
  return all;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    if (names.empty() || names.back() != field.section) names.push_back(field.section);
  }
  return names;
}

const Field* find_field(std::string_view key) {
  const auto all = fields();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.key == key; });
  return at == all.end() ? nullptr : &*at;
}

std::string key_hint(std::string_view key) {
  // Some recipes set this field, which exists nowhere.
  if (key.ends_with("moe_a2a_overlap")) {
    return "the switch is comm_overlap.overlap_moe_expert_parallel_comm";
  }
  // A word without a section is compared with the names alone.
  const bool bare = key.find('.') == std::string_view::npos;
  std::vector<std::string> candidates;
  for (const Field& field : fields()) candidates.push_back(bare ? field.name : field.key);
  if (key.size() <= 128) {
    if (const auto best = base::nearest(key, candidates)) {
      const auto at = std::find(candidates.begin(), candidates.end(), *best);
      const Field& field = fields()[static_cast<std::size_t>(at - candidates.begin())];
      return base::text("did you mean '{}'?", field.key);
    }
  }
  return "`weft config` lists every key";
}

bool is_default(const Field& field, const Config& config) {
  static const Config defaults;
  return field.get(config) == field.get(defaults);
}

std::string value_text(const Field& field, const Config& config) {
  const base::Json value = field.get(config);
  const bool word = value.is_string() && field.type != WordCodec<std::string>::one();
  return word ? value.get<std::string>() : value.dump();
}

Written written_from_text(const Field& field, std::string_view typed) {
  const std::string_view word = base::trim(typed);
  if (word == "null" && field.type != WordCodec<std::string>::one()) return std::monostate{};
  const bool list = word.size() >= 2 && word.front() == '[' && word.back() == ']';
  const bool takes_list = field.shape == Shape::List || field.shape == Shape::OptionalList;
  if (takes_list && list) {
    std::vector<std::string> items;
    const std::string_view inside = base::trim(word.substr(1, word.size() - 2));
    if (inside.empty()) return items;
    for (const std::string& item : base::split(inside, ',')) {
      items.emplace_back(unquoted(base::trim(item)));
    }
    return items;
  }
  return std::string(typed);
}

std::string shown(std::string_view typed) {
  constexpr std::size_t kShown = 80;
  std::string clean(typed.substr(0, kShown));
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return typed.size() > kShown ? clean + "..." : clean;
}

}  // namespace weft::config
