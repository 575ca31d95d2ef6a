// First rules: whether the words can be read, and each number alone.
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
    {.id = "W71",
     .when =
         "files that do not fit the run: data too small for a sample of each split, orders of "
         "another step, a checkpoint.load of another model, checkpoint.save_hf of a model that no "
         "Hugging Face family computes; a warning where a file is not on this machine",
     .then = "refused",
     .why =
         "`weft train` looks at them before its first step, and `weft check` in the same way: what "
         "it calls legal is not refused later.",
     .example = "checkpoint.save_hf=x model.moe_shared_expert_intermediate_size=64",
     .judge = nullptr},
    {.id = "D1",
     .kind = Kind::Automatic,
     .when = "dataset.path, dataset.blend or dataset.blend_per_split without dataset.kind",
     .then = "dataset.kind from the path: .bin and .idx are indexed, a file or folder is text; "
             "refused where the path leads nowhere or to no plain text",
     .why = "Data that are named are read. Mock tokens in their place would train another model, "
            "and nothing would show it.",
     .example = "dataset.path=recipes/corpus.txt",
     .judge = nullptr},
    {.id = "D2",
     .kind = Kind::Warning,
     .when = "dataset.kind=mock beside data that the same words name",
     .then = "warned",
     .why = "Mock tokens are made up, and what the path names is not read.",
     .example = "dataset.kind=mock dataset.path=x",
     .judge = nullptr},
    {.id = "D3",
     .kind = Kind::Automatic,
     .when = "a run begins with a Hugging Face folder, and neither recipe nor words choose a key",
     .then = "the dtype and balancing loss of the folder, sequences of min(4096, its positions), "
             "lr 1e-5 with warm-up and cosine decay, 100 steps of 16 sequences, evaluations",
     .why = "The defaults are those of a small model that begins: a rate of 1e-3 without warm-up "
            "and sequences of 64 tokens spoil weights that are trained.",
     .example = "checkpoint.pretrained_checkpoint=FOLDER",
     .judge = nullptr},
};

}  // namespace

std::span<const Rule> input_rules() { return kInputRules; }

}  // namespace weft::rules
