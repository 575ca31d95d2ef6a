#include "weft/config/field.h"

#include <gtest/gtest.h>

#include <set>

#include "weft/base/files/file.h"
#include "weft/config/key_table.h"
#include "weft/config/ranges.h"

namespace weft::config {
namespace field_test {

TEST(Field, EveryDeclarationIsInTheTableOnce) {
  std::size_t declared = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/weft/config/fields")) {
    const std::string list = base::read_text(entry.path());
    for (const std::string& line : base::split(list, '\n')) {
      if (line.starts_with("WEFT_FIELD(")) ++declared;
    }
  }
  std::set<std::string> keys;
  for (const Field& field : fields()) keys.insert(field.key);
  EXPECT_EQ(keys.size(), declared);
  EXPECT_EQ(fields().size(), declared);
}

TEST(Field, EveryNumberHasARange) {
  std::set<std::string_view> ranged;
  for (const Range& range : ranges()) ranged.insert(range.key);
  for (const Field& field : fields()) {
    const bool number = field.type.find("integer") != std::string::npos ||
                        field.type.find("number") != std::string::npos;
    EXPECT_EQ(ranged.contains(field.key), number) << field.key;
  }
  EXPECT_EQ(ranged.size(), ranges().size());
}

TEST(Field, ReadsEachTypeFromText) {
  Config config;
  const auto set = [&](const char* key, const char* typed) {
    const Field* field = find_field(key);
    return field != nullptr && field->set(config, written_from_text(*field, typed));
  };
  EXPECT_TRUE(set("model.hidden_size", "96"));
  EXPECT_TRUE(set("optimizer.lr", "1e-4"));
  EXPECT_TRUE(set("runtime.trace", "true"));
  EXPECT_TRUE(set("dataset.path", "[a] = null, \"b\""));
  EXPECT_TRUE(set("model.num_query_groups", "2"));
  EXPECT_TRUE(set("model.moe_layer_freq", "[1, 0,1]"));
  EXPECT_TRUE(set("dataset.extensions", "['.md', .txt]"));
  EXPECT_TRUE(set("model.params_dtype", "bf16"));
  EXPECT_EQ(config.model.hidden_size, 96);
  EXPECT_EQ(config.optimizer.lr, 1e-4);
  EXPECT_TRUE(config.runtime.trace);
  EXPECT_EQ(config.dataset.path, "[a] = null, \"b\"");
  EXPECT_EQ(config.model.num_query_groups, 2);
  EXPECT_EQ(config.model.moe_layer_freq, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(config.dataset.extensions, (std::vector<std::string>{".md", ".txt"}));
  EXPECT_EQ(config.model.params_dtype, DType::BF16);
  EXPECT_TRUE(set("model.num_query_groups", "null"));
  EXPECT_EQ(config.model.num_query_groups, std::nullopt);
  EXPECT_TRUE(set("model.moe_layer_freq", "2"));
  EXPECT_EQ(config.model.moe_layer_freq, (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(set("dataset.extensions", "[]"));
  EXPECT_TRUE(config.dataset.extensions.empty());
}

TEST(Field, RefusesValuesOfAnotherType) {
  Config config;
  const std::pair<const char*, const char*> wrong[] = {{"model.hidden_size", "1.5"},
                                                       {"model.hidden_size", "null"},
                                                       {"model.hidden_size", ""},
                                                       {"model.hidden_size", "9223372036854775808"},
                                                       {"model.hidden_size", "[1]"},
                                                       {"optimizer.lr", "nan"},
                                                       {"optimizer.lr", "inf"},
                                                       {"optimizer.lr", "1e999"},
                                                       {"runtime.trace", "yes"},
                                                       {"model.moe_layer_freq", "[1,,1]"},
                                                       {"model.moe_layer_freq", "[1,x]"},
                                                       {"dataset.path", "a\nb"},
                                                       {"dataset.path", "\xff"},
                                                       {"model.params_dtype", "fp8"}};
  for (const auto& [key, typed] : wrong) {
    const Field* field = find_field(key);
    ASSERT_NE(field, nullptr) << key;
    EXPECT_FALSE(field->set(config, written_from_text(*field, typed))) << key << "=" << typed;
    EXPECT_EQ(value_text(*field, config), field->initial) << key;
  }
}

TEST(Field, HintNamesTheNearestKey) {
  EXPECT_EQ(key_hint("model.hiden_size"), "did you mean 'model.hidden_size'?");
  EXPECT_EQ(key_hint("global_batch_size"), "did you mean 'train.global_batch_size'?");
  EXPECT_EQ(key_hint("model." + std::string(100000, 'q')), "`weft config` lists every key");
  EXPECT_EQ(key_hint("train.micro_batch"), "did you mean 'train.micro_batch_size'?");
}

TEST(Field, CommittedReferenceIsTheGeneratedOne) {
  EXPECT_EQ(base::read_text(WEFT_SOURCE_DIR "/docs/config.md"), markdown_reference())
      << "run: weft config --markdown > docs/config.md";
}

TEST(Field, ReferenceListsEveryKeyWithItsDefault) {
  const std::string reference = text_reference();
  for (const Field& field : fields()) {
    EXPECT_NE(reference.find(field.key + "=" + field.initial), std::string::npos) << field.key;
    EXPECT_FALSE(field.meaning.empty()) << field.key;
  }
}

}  // namespace field_test
}  // namespace weft::config
