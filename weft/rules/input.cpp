// What is judged before any other rule: whether the words can be read, and each number alone.
#include "weft/rules/topics.h"

namespace weft::rules {
namespace {

constexpr Rule kInputRules[] = {
    {.id = "W31",
     .when = "a word, a flag, a recipe or a file that cannot be read: an unknown key, a value of "
             "another "
             "type, YAML that is none",
     .then = "refused",
     .why = "Nothing that is typed is ignored. The message names the word, or the file and its "
            "line, and "
            "the nearest name there is.",
     .example = "model.num_layer=4",
     .also = "TC-30 TC-48 TC-52 TC-80",
     .judge = nullptr},
    {.id = "W1",
     .when = "a number outside the range of its key, or not finite",
     .then = "refused",
     .why = "Each key has one range; rules over several keys are silent where one of them is "
            "outside, so "
            "that one mistake is one error.",
     .example = "model.num_layers=0",
     .judge = nullptr},
};

}  // namespace

std::span<const Rule> input_rules() { return kInputRules; }

}  // namespace weft::rules
