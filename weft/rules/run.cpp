// Tokens, learning rate, data, and checkpoints.
#include <set>

#include "weft/base/files/file.h"
#include "weft/derive/evaluation_sets.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// Far below the values at which 64-bit counts would overflow.
constexpr double kMostTokensOfMicroBatch = 1u << 31;
constexpr double kMostTokensOfStep = 1ull << 40;

void judge_tokens(Judge& judge) {
  struct Batch {
    const char* key;
    std::int64_t sequences;
    double most_tokens;
  };
  const TrainConfig& train = judge.config().train;
  for (const Batch& batch :
       {Batch{"train.micro_batch_size", train.micro_batch_size, kMostTokensOfMicroBatch},
        Batch{"train.global_batch_size", train.global_batch_size, kMostTokensOfStep}}) {
    if (!judge.sound({"model.seq_length", batch.key})) continue;
    const double tokens =
        static_cast<double>(batch.sequences) * static_cast<double>(judge.model().seq_length);
    if (tokens <= batch.most_tokens) continue;
    judge.report(batch.key,
                 text("{} = {} of model.seq_length = {} is {:.0f} tokens",
                      batch.key,
                      batch.sequences,
                      judge.model().seq_length,
                      tokens),
                 text("use at most {:.0f}", batch.most_tokens));
  }
}

void judge_min_lr(Judge& judge) {
  const OptimizerConfig& optimizer = judge.config().optimizer;
  if (!judge.sound({"optimizer.lr", "optimizer.min_lr"}) || optimizer.min_lr <= optimizer.lr)
    return;
  judge.report(
      "optimizer.min_lr",
      text("optimizer.min_lr = {} is above optimizer.lr = {}", optimizer.min_lr, optimizer.lr),
      "use at most that");
}

// A warm-up longer than the run is legal without a decay: the run ends during it.
void judge_warmup(Judge& judge) {
  const SchedulerConfig& scheduler = judge.config().scheduler;
  if (scheduler.lr_warmup_samples > 0 || scheduler.lr_warmup_fraction) return;
  if (!judge.sound({"scheduler.lr_warmup_iters", "scheduler.lr_decay_iters"})) return;
  if (!scheduler.lr_decay_iters || scheduler.lr_warmup_iters < *scheduler.lr_decay_iters) return;
  if (scheduler.lr_warmup_iters == 0) return;
  judge.set("scheduler.lr_warmup_iters",
            text("{}", *scheduler.lr_decay_iters - 1),
            text("scheduler.lr_warmup_iters = {} leaves nothing of scheduler.lr_decay_iters = {}",
                 scheduler.lr_warmup_iters,
                 *scheduler.lr_decay_iters),
            "use less than the decay");
}

void judge_no_evaluation(Judge& judge) {
  if (judge.config().train.eval_iters != 0) return;
  judge.set("train.eval_interval", "0", "train.eval_iters = 0 evaluates nothing");
}

void judge_data_path(Judge& judge) {
  const DatasetConfig& dataset = judge.config().dataset;
  const bool has_data =
      !dataset.path.empty() || !dataset.blend.empty() || !dataset.blend_per_split.empty();
  if (dataset.kind == DataKind::Mock || has_data) return;
  judge.report("dataset.path",
               text("dataset.kind = {} reads files", word(dataset.kind)),
               "set dataset.path, dataset.blend or dataset.blend_per_split");
}

void judge_bytes_as_tokens(Judge& judge) {
  if (judge.config().dataset.kind != DataKind::Text || judge.model().vocab_size >= 256) return;
  judge.report("model.vocab_size",
               text("dataset.kind = text has one token a byte, and model.vocab_size = {}",
                    judge.model().vocab_size),
               "use at least 256");
}

void judge_held_out(Judge& judge) {
  const Config& config = judge.config();
  if (config.dataset.kind == DataKind::Mock || config.train.eval_interval <= 0) return;
  const bool has_other = !config.dataset.valid_data_path.empty() || !config.dataset.split.empty() ||
                         !config.dataset.blend_per_split.empty();
  if (config.dataset.eval_fraction != 0 || has_other) return;
  judge.report(
      "dataset.eval_fraction",
      text("train.eval_interval = {} with dataset.eval_fraction = 0 has nothing to evaluate "
           "on",
           config.train.eval_interval),
      "set a fraction such as 0.05, or train.eval_interval=0");
}

// Names become parts of tags and keys that other programs read.
bool is_set_name(const std::string& name) {
  constexpr std::size_t kLongestName = 64;
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._+-").find(c) != std::string_view::npos;
  });
}

void judge_evaluation_sets(Judge& judge) {
  constexpr std::size_t kMostSets = 64;
  const DatasetConfig& dataset = judge.config().dataset;
  const std::string key = "dataset.valid_data_path";
  const std::size_t sets = dataset.valid_data_path.size();
  if (sets == 0) return;
  if (dataset.kind == DataKind::Mock) {
    judge.report(key,
                 text("{} names files, and dataset.kind = mock reads none", key),
                 "set dataset.kind, or leave the sets out");
  }
  if (sets > kMostSets) {
    judge.report(key, text("{} has {} sets", key, sets), text("name at most {}", kMostSets));
    return;
  }
  std::set<std::string> names;
  for (const derive::EvaluationSet& set : derive::evaluation_sets_of(dataset)) {
    const std::string shown = base::shown(set.name);
    if (set.path.empty()) {
      judge.report(key, text("{}: the set '{}' has no path", key, shown), "write NAME=PATH");
    } else if (!is_set_name(set.name)) {
      judge.report(key,
                   text("{}: '{}' cannot be the name of a set", key, shown),
                   "write NAME=PATH, with a name of up to 64 letters, digits and . _ + -");
    } else if (!names.insert(set.name).second) {
      judge.report(key,
                   text("{}: two sets are called '{}'", key, shown),
                   "write NAME=PATH with other names");
    }
  }
}

void judge_saved(Judge& judge) {
  const Config& config = judge.config();
  if (!is_pretended(config.runtime.backend)) return;
  const auto refuse = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    judge.report(key,
                 text("{}: runtime.backend = {} is a pretended world, whose weights are not those "
                      "of a run",
                      key,
                      word(config.runtime.backend)),
                 text("leave {} empty, or use runtime.backend=threads or mpi", key));
  };
  refuse("checkpoint.save_hf", config.checkpoint.save_hf);
  refuse("checkpoint.save", config.checkpoint.save);
  refuse("checkpoint.load", config.checkpoint.load);
}

void judge_finetune(Judge& judge) {
  const CheckpointConfig& checkpoint = judge.config().checkpoint;
  if (!checkpoint.finetune) return;
  if (checkpoint.load.empty()) {
    judge.report("checkpoint.finetune",
                 "checkpoint.finetune begins with the weights of checkpoint.load, which is empty",
                 "set checkpoint.load (a Hugging Face folder is checkpoint.pretrained_checkpoint, "
                 "and needs no finetune)");
  } else if (!checkpoint.save.empty() && base::is_same_path(checkpoint.load, checkpoint.save)) {
    judge.report(
        "checkpoint.finetune",
        text("checkpoint.finetune begins with the weights in '{}', where the run saves too: "
             "which of the two is meant when it is started again cannot be known",
             checkpoint.load),
        "name another folder in checkpoint.save");
  }
}

void judge_optimizer_left(Judge& judge) {
  const CheckpointConfig& checkpoint = judge.config().checkpoint;
  if (checkpoint.load_optim || checkpoint.load.empty() || checkpoint.finetune) return;
  if (checkpoint.load != checkpoint.save) return;
  judge.report("checkpoint.load_optim",
               text("checkpoint.load_optim = false with one folder to load from and to save to "
                    "('{}'): every start leaves the optimizer, also one that goes on after a fault",
                    checkpoint.save),
               "save to another folder, and the same command goes on from there with all it has");
}

void judge_nccl(Judge& judge) {
  const RuntimeConfig& runtime = judge.config().runtime;
  if (runtime.backend != CommBackend::Nccl || runtime.device == DeviceKind::Cuda) return;
  judge.report("runtime.backend",
               "runtime.backend = nccl moves bytes between GPUs, and runtime.device = cpu",
               "use runtime.device=cuda, or runtime.backend=mpi for ranks on processor cores");
}

constexpr Rule kRunRules[] = {
    {.id = "W144",
     .kind = Kind::Automatic,
     .when = "train.eval_iters = 0",
     .then = "train.eval_interval := 0, and no test split is evaluated",
     .why = "Scripts for Megatron switch evaluation off so.",
     .example = "train.eval_iters=0 train.eval_interval=5",
     .judge = judge_no_evaluation},
    {.id = "W10",
     .when = "a micro-batch above 2^31 tokens, or a step above 2^40",
     .then = "refused",
     .why = "Counts stay far below where 64-bit arithmetic would overflow.",
     .example = "train.micro_batch_size=1048576 train.global_batch_size=1048576 "
                "model.seq_length=16777216",
     .judge = judge_tokens},
    {.id = "W11",
     .when = "optimizer.min_lr above optimizer.lr",
     .then = "refused",
     .why = "The learning rate decays from lr to min_lr.",
     .example = "optimizer.lr=0.001 optimizer.min_lr=0.1",
     .judge = judge_min_lr},
    {.id = "V31",
     .kind = Kind::Mended,
     .when = "scheduler.lr_warmup_iters at or above scheduler.lr_decay_iters",
     .then = "scheduler.lr_warmup_iters := lr_decay_iters - 1",
     .why = "A warm-up that ends after the decay would never leave a step for it.",
     .example = "scheduler.lr_warmup_iters=20 scheduler.lr_decay_iters=10",
     .judge = judge_warmup},
    {.id = "W12",
     .when = "dataset.kind reads files, and dataset.path, blend and blend_per_split are empty",
     .then = "refused",
     .why = "There is nothing to read.",
     .example = "dataset.kind=text",
     .judge = judge_data_path},
    {.id = "W13",
     .when = "dataset.kind = text and model.vocab_size below 256",
     .then = "refused",
     .why = "Byte-level text has 256 tokens.",
     .example = "dataset.kind=text dataset.path=docs model.vocab_size=128",
     .judge = judge_bytes_as_tokens},
    {.id = "W14",
     .when = "train.eval_interval > 0 on files, dataset.eval_fraction = 0, no dataset.split, no "
             "blend_per_split and no dataset.valid_data_path",
     .then = "refused",
     .why = "Evaluation reads the part of the data that training does not.",
     .example = "dataset.kind=text dataset.path=docs train.eval_interval=5 dataset.eval_fraction=0",
     .judge = judge_held_out},
    {.id = "W95",
     .when = "dataset.valid_data_path with dataset.kind = mock, more than 64 sets, a set without a "
             "path, or names that are not plain or occur twice",
     .then = "refused",
     .why = "Each set is evaluated alone and logged under its name: the last part of its path, or "
            "what stands before the sign in NAME=PATH.",
     .example = "dataset.kind=text dataset.path=docs train.eval_interval=5 "
                "dataset.valid_data_path=[a/text,b/text]",
     .judge = judge_evaluation_sets},
    {.id = "W74",
     .when = "checkpoint.save_hf, save or load with runtime.backend = fake or loopback",
     .then = "refused",
     .why = "One rank runs and has no peers: what it learns is not what a run learns, and most of "
            "the model is on ranks that are not there.",
     .example = "runtime.backend=loopback checkpoint.save_hf=x",
     .judge = judge_saved},
    {.id = "W110",
     .when = "checkpoint.finetune without checkpoint.load, or with load = save",
     .then = "refused",
     .why = "A run that begins with the weights of another needs that other, and a folder of its "
            "own.",
     .example = "checkpoint.finetune=true",
     .judge = judge_finetune},
    {.id = "W111",
     .kind = Kind::Warning,
     .when = "checkpoint.load_optim = false with checkpoint.load = save and without "
             "checkpoint.finetune",
     .then = "warned",
     .why = "Step and data go on, moments are zero and the learning rate begins anew, as in "
            "Megatron; a job that is started again would do so once more.",
     .example = "checkpoint.load=x checkpoint.save=x checkpoint.load_optim=false",
     .judge = judge_optimizer_left},
    {.id = "W75",
     .when = "runtime.backend = nccl with runtime.device = cpu",
     .then = "refused",
     .why = "NCCL reaches the memory of GPUs alone.",
     .example = "runtime.backend=nccl",
     .judge = judge_nccl},
};

}  // namespace

std::span<const Rule> run_rules() { return kRunRules; }

}  // namespace weft::rules
