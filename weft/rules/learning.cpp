// Length of a run and of its learning rate schedule, in steps or in sequences.
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_samples(Judge& judge) {
  const TrainConfig& train = judge.config().train;
  if (!train.train_samples) return;
  if (!judge.sound({"train.train_samples", "train.global_batch_size"})) return;
  const std::int64_t steps = *train.train_samples / train.global_batch_size;
  if (steps < 1) return;
  judge.set("train.train_iters",
            text("{}", steps),
            text("train.train_samples = {} of train.global_batch_size = {}",
                 *train.train_samples,
                 train.global_batch_size));
}

void judge_too_few_samples(Judge& judge) {
  const TrainConfig& train = judge.config().train;
  if (!train.train_samples) return;
  if (!judge.sound({"train.train_samples", "train.global_batch_size"})) return;
  if (*train.train_samples >= train.global_batch_size) return;
  judge.report(
      "train.train_samples",
      text("train.train_samples = {} is less than one step of train.global_batch_size = {}",
           *train.train_samples,
           train.global_batch_size),
      "train on more, or set train.train_iters");
}

void judge_one_length(Judge& judge) {
  const SchedulerConfig& scheduler = judge.config().scheduler;
  const auto both = [&](bool is_wrong, const char* key, const char* other) {
    if (!is_wrong) return;
    judge.report(key,
                 text("{} and {} both give one length", key, other),
                 text("keep one of them: ~{} gives the other its way", key));
  };
  const bool by_samples = scheduler.lr_warmup_samples > 0;
  both(by_samples && scheduler.lr_warmup_iters > 0,
       "scheduler.lr_warmup_iters",
       "scheduler.lr_warmup_samples");
  both(scheduler.lr_warmup_fraction && scheduler.lr_warmup_iters > 0,
       "scheduler.lr_warmup_iters",
       "scheduler.lr_warmup_fraction");
  both(scheduler.lr_warmup_fraction && by_samples,
       "scheduler.lr_warmup_samples",
       "scheduler.lr_warmup_fraction");
  both(scheduler.lr_decay_samples && scheduler.lr_decay_iters,
       "scheduler.lr_decay_iters",
       "scheduler.lr_decay_samples");
  both(scheduler.lr_wsd_decay_samples && scheduler.lr_wsd_decay_iters,
       "scheduler.lr_wsd_decay_iters",
       "scheduler.lr_wsd_decay_samples");
}

void judge_last_part(Judge& judge) {
  const Config& config = judge.config();
  const SchedulerConfig& scheduler = config.scheduler;
  if (scheduler.lr_decay_style != LrDecay::WarmupStableDecay) return;
  if (scheduler.lr_wsd_decay_iters || scheduler.lr_wsd_decay_samples) return;
  judge.report("scheduler.lr_wsd_decay_iters",
               "scheduler.lr_decay_style = WSD without the length of its last part",
               "set scheduler.lr_wsd_decay_iters or lr_wsd_decay_samples");
}

constexpr Rule kLearningRules[] = {
    {.id = "W140",
     .kind = Kind::Automatic,
     .when = "train.train_samples",
     .then = "train.train_iters := train_samples / global_batch_size, whole steps",
     .why = "Megatron ends a run of samples after the last whole step.",
     .example = "train.train_samples=100 train.global_batch_size=8",
     .judge = judge_samples},
    {.id = "W141",
     .when = "train.train_samples below train.global_batch_size",
     .then = "refused",
     .why = "The run would have no step.",
     .example = "train.train_samples=7 train.global_batch_size=8",
     .judge = judge_too_few_samples},
    {.id = "W142",
     .when = "two of a length in steps, in sequences and as a share: of the warm-up, of the decay, "
             "of the last part of WSD",
     .then = "refused",
     .why = "Which of the two is meant cannot be known. Megatron refuses them too.",
     .example = "scheduler.lr_warmup_iters=2 scheduler.lr_warmup_fraction=0.1",
     .judge = judge_one_length},
    {.id = "W143",
     .when = "scheduler.lr_decay_style = WSD without lr_wsd_decay_iters or lr_wsd_decay_samples",
     .then = "refused",
     .why = "Warm-up and decay have a length; the last part of WSD has none of its own.",
     .example = "scheduler.lr_decay_style=WSD",
     .judge = judge_last_part},
};

}  // namespace

std::span<const Rule> learning_rules() { return kLearningRules; }

}  // namespace weft::rules
