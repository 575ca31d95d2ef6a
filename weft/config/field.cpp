#include "weft/config/field.h"

#include <algorithm>

#include "weft/config/blend_list.h"
#include "weft/config/opposite.h"
#include "weft/config/other_names.h"

namespace weft::config {
namespace {

// Properties of a field besides its type.
struct Description {
  const char* name;
  const char* meaning;
  const char* unit;
  Support support;
};

// Appends a field without a type to the table.
Field& append(const char* section, const Description& description, std::vector<Field>& all) {
  Field& field = all.emplace_back();
  field.section = section;
  field.name = description.name;
  field.key = base::text("{}.{}", section, description.name);
  field.meaning = description.meaning;
  field.unit = description.unit;
  field.support = description.support;
  return field;
}

template <typename Section, typename T>
class MemberAccess final : public FieldAccess {
 public:
  MemberAccess(Section Config::*section, T Section::*member) : section_(section), member_(member) {}

  base::Json get(const Config& config) const override {
    return FieldCodec<T>::json(config.*section_.*member_);
  }

  void copy(const Config& from, Config& to) const override {
    to.*section_.*member_ = from.*section_.*member_;
  }

  bool set(Config& config, const Written& written) const override {
    // Megatron Bridge's "unset", beside true and false, is the default here.
    if constexpr (std::is_same_v<T, bool>) {
      if (std::holds_alternative<std::monostate>(written)) {
        config.*section_.*member_ = Section().*member_;
        return true;
      }
    }
    auto value = FieldCodec<T>::parse(written);
    if (value) config.*section_.*member_ = std::move(*value);
    return value.has_value();
  }

 private:
  Section Config::*section_;
  T Section::*member_;
};

// Adds the fields of one section to the table.
template <typename Section>
class SectionFields {
 public:
  SectionFields(const char* name, Section Config::*section, std::vector<Field>& all)
      : name_(name), section_(section), all_(all) {}

  using Type = Section;

  // Never inlined: hundreds of copies in one function would dominate compile time.
  template <typename T>
  [[gnu::noinline]] void add(T Section::*member, const Description& description) {
    Field& field = append(name_, description, all_);
    field.type = FieldCodec<T>::type();
    field.example = FieldCodec<T>::example();
    field.shape = FieldCodec<T>::shape;
    field.access.reset(new MemberAccess<Section, T>(section_, member));
  }

 private:
  const char* name_;
  Section Config::*section_;
  std::vector<Field>& all_;
};

// Functions for the last column of the lists.
Support built() { return {}; }
Support later(std::string_view part) { return {.kind = Support::Kind::Later, .text = part}; }
Support with(std::string_view key) { return {.kind = Support::Kind::With, .text = key}; }
Support idle(std::string_view why) { return {.kind = Support::Kind::Idle, .text = why}; }
Support idle_on_cpu(std::string_view why) {
  return {.kind = Support::Kind::IdleOnCpu, .text = why};
}

std::vector<Field> make_fields() {
  std::vector<Field> all;
#define WEFT_FIELD(type, name, initial, meaning, unit, support) \
  section.add(&decltype(section)::Type::name, Description{#name, meaning, unit, support});
  {
    SectionFields section("model", &Config::model, all);
#include "weft/config/fields/model.def"
#include "weft/config/fields/model_memory.def"
#include "weft/config/fields/model_moe.def"
#include "weft/config/fields/model_parallel.def"
#include "weft/config/fields/model_precision.def"
  }
  {
    SectionFields section("comm_overlap", &Config::comm_overlap, all);
#include "weft/config/fields/comm_overlap.def"
  }
  {
    SectionFields section("ddp", &Config::ddp, all);
#include "weft/config/fields/ddp.def"
  }
  {
    SectionFields section("train", &Config::train, all);
#include "weft/config/fields/train.def"
  }
  {
    SectionFields section("optimizer", &Config::optimizer, all);
#include "weft/config/fields/optimizer.def"
  }
  {
    SectionFields section("scheduler", &Config::scheduler, all);
#include "weft/config/fields/scheduler.def"
  }
  {
    SectionFields section("dataset", &Config::dataset, all);
#include "weft/config/fields/dataset.def"
  }
  {
    SectionFields section("tokenizer", &Config::tokenizer, all);
#include "weft/config/fields/tokenizer.def"
  }
  {
    SectionFields section("rng", &Config::rng, all);
#include "weft/config/fields/rng.def"
  }
  {
    SectionFields section("rerun_state_machine", &Config::rerun_state_machine, all);
#include "weft/config/fields/rerun_state_machine.def"
  }
  {
    SectionFields section("checkpoint", &Config::checkpoint, all);
#include "weft/config/fields/checkpoint.def"
  }
  {
    SectionFields section("logger", &Config::logger, all);
#include "weft/config/fields/logger.def"
  }
  {
    SectionFields section("runtime", &Config::runtime, all);
#include "weft/config/fields/runtime.def"
  }
  {
    SectionFields section("fabric", &Config::fabric, all);
#include "weft/config/fields/fabric.def"
  }
  {
    SectionFields section("hardware", &Config::hardware, all);
#include "weft/config/fields/hardware.def"
  }
#undef WEFT_FIELD
  const Config defaults;
  for (Field& field : all) field.initial = value_text(field, defaults);
  return all;
}

// Field with the most similar name; nullptr: none is near. A name is compared within its section,
// and a bare word with all names: the section's letters do not count. If the section is misspelled,
// whole keys are compared.
const Field* nearest_field(std::string_view key) {
  const std::size_t dot = key.find('.');
  const bool bare = dot == std::string_view::npos;
  const std::string_view name = bare ? key : key.substr(dot + 1);
  const std::vector<std::string> sections = section_names();
  const bool known = !bare && std::ranges::find(sections, key.substr(0, dot)) != sections.end();
  std::vector<std::string> candidates;
  std::vector<const Field*> meant;
  for (const Field& field : fields()) {
    if (known && field.section != key.substr(0, dot)) continue;
    if (is_opposite(name, field.name)) continue;
    candidates.push_back(bare || known ? field.name : field.key);
    meant.push_back(&field);
  }
  const auto best = base::nearest(bare || known ? name : key, candidates);
  if (best) return meant[std::ranges::find(candidates, *best) - candidates.begin()];
  // Prefix of a name.
  for (std::size_t i = 0; i < candidates.size() && name.size() >= 4; ++i) {
    if (meant[i]->name.starts_with(name)) return meant[i];
  }
  // Name of another section's key.
  const auto all = fields();
  const auto elsewhere = std::ranges::find(all, name, &Field::name);
  return elsewhere == all.end() ? nullptr : &*elsewhere;
}

std::string short_name_list() {
  std::vector<std::string_view> names;
  for (const ShortName& shorter : short_names()) names.push_back(shorter.name);
  return base::text("{}", fmt::join(names, ", "));
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
  // Some recipes set this field, which does not exist.
  if (key.ends_with("moe_a2a_overlap")) {
    return "the switch is comm_overlap.overlap_moe_expert_parallel_comm";
  }
  // "optimizer.type": the field is named after its section.
  const std::string_view section = key.substr(0, key.find('.'));
  if (key.ends_with(".type") || key.ends_with(".name")) {
    const Field* kind = find_field(base::text("{}.{}", section, section));
    if (kind != nullptr) return base::text("did you mean '{}'?", kind->key);
  }
  if (key.size() <= 128) {
    if (const Field* near = nearest_field(key)) return base::text("did you mean '{}'?", near->key);
  }
  const bool bare = key.find('.') == std::string_view::npos;
  return bare ? base::text("`weft config` lists every key; short names are {}", short_name_list())
              : "`weft config` lists every key";
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
  // `[a,b]`, or `a,b` without brackets; `[0]*2+[1]` is not a plain list.
  const bool list = word.size() >= 2 && word.front() == '[' && word.find(']') == word.size() - 1;
  const bool commas = word.find(',') != std::string_view::npos &&
                      word.find_first_of("[]()") == std::string_view::npos;
  const bool takes_list = field.shape == Shape::List || field.shape == Shape::OptionalList;
  if (takes_list && field.type.find(WordCodec<std::string>::many()) != std::string::npos) {
    if (std::optional<std::vector<std::string>> lists = lists_in(word)) return std::move(*lists);
  }
  if (takes_list && (list || commas)) {
    std::vector<std::string> items;
    const std::string_view inside = list ? base::trim(word.substr(1, word.size() - 2)) : word;
    if (inside.empty()) return items;
    for (const std::string& item : base::split(inside, ',')) {
      items.emplace_back(unquoted(base::trim(item)));
    }
    return items;
  }
  return std::string(typed);
}

}  // namespace weft::config
