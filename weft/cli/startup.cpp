#include "weft/cli/startup.h"

#include "weft/base/casts.h"
#include "weft/base/cores.h"
#include "weft/base/text.h"
#include "weft/cli/layout_text.h"
#include "weft/cli/output.h"
#include "weft/derive/derived.h"
#include "weft/rules/overlap_modes.h"
#include "weft/schedule/offload_text.h"

namespace weft::cli {
namespace {

using base::counted;
using base::text;

std::string model_line(const config::Config& config, const std::string& name) {
  const config::ModelConfig& model = config.model;
  const derive::ParameterCount parameters = derive::parameters_of(model);
  std::string experts;
  if (model.experts() > 0) {
    experts = text(", {} of which a token takes {}",
                   counted(model.experts(), "expert"),
                   model.moe_router_topk);
  }
  return text("weft: {}: {}{}; {:.1f} M parameters ({:.1f} M active), {}",
              name,
              counted(model.num_layers, "layer"),
              experts,
              static_cast<double>(parameters.total) / 1e6,
              static_cast<double>(parameters.active) / 1e6,
              config::word(model.params_dtype));
}

std::string ranks_line(const config::Config& config) {
  return text("ranks     {} ({}), {}, {} each; order: {}",
              counted(derive::layout_of(config).world, "rank"),
              is_pretended(config) ? "pretended, one runs" : config::word(config.runtime.backend),
              layout_text(config.model),
              counted(config.runtime.threads_per_rank, "thread"),
              order_text(config));
}

std::string batch_line(const config::Config& config) {
  return text("batch     {} of {} a step ({}), in micro-batches of {}",
              counted(config.train.global_batch_size, "sequence"),
              counted(config.model.seq_length, "token"),
              counted(derive::tokens_per_step(config), "token"),
              config.train.micro_batch_size);
}

std::string rate_line(const config::Config& config) {
  const config::SchedulerConfig& scheduler = config.scheduler;
  std::string line = text("rate      {:g}", config.optimizer.lr);
  const std::int64_t last = scheduler.lr_decay_iters.value_or(config.train.train_iters);
  if (scheduler.lr_warmup_iters > last) {
    return line + text(" after {} of warm-up, which the run does not reach: it is {:g} at step {}",
                       counted(scheduler.lr_warmup_iters, "step"),
                       config.optimizer.lr * base::number(config.train.train_iters) /
                           base::number(scheduler.lr_warmup_iters),
                       config.train.train_iters);
  }
  if (scheduler.lr_warmup_iters > 0) {
    line += text(" after {} of warm-up", counted(scheduler.lr_warmup_iters, "step"));
  }
  if (scheduler.lr_decay_style == config::LrDecay::Constant) return line + ", constant";
  return line + text(", {} to {:g} at step {}",
                     config::word(scheduler.lr_decay_style),
                     config.optimizer.min_lr,
                     last);
}

std::string weights_line(const config::Config& config) {
  const std::string& start = config.checkpoint.pretrained_checkpoint;
  const std::string& load = config.checkpoint.load;
  if (!load.empty()) {
    return text("weights   from the checkpoint in {}{}",
                load,
                load == config.checkpoint.save ? ", or a new start where there is none" : "");
  }
  if (start.empty()) return text("weights   random (rng.seed={})", config.rng.seed);
  return text("weights   from {}", start);
}

}  // namespace

bool is_pretended(const config::Config& config) {
  return config::is_pretended(config.runtime.backend);
}

std::vector<std::string> opening_lines(const rules::Verdict& verdict,
                                       const std::string& name,
                                       Opening opening) {
  const config::Config& config = verdict.config;
  std::vector<std::string> lines{model_line(config, name),
                                 ranks_line(config),
                                 batch_line(config),
                                 rate_line(config),
                                 weights_line(config)};
  if (const grid::Fabric fabric = derive::fabric_of(config); !fabric.is_free()) {
    lines.push_back("links     " + grid::describe(fabric));
  }
  for (const rules::OverlapMode& mode : rules::overlap_modes(verdict)) {
    if (!mode.on && !mode.automatic && opening == Opening::Short) continue;
    lines.push_back("overlap   " + rules::to_line(mode));
  }
  if (const std::string offload = schedule::offload_text(config); !offload.empty()) {
    lines.push_back("offload   " + offload);
  }
  if (opening == Opening::Short) return lines;
  for (const config::Finding& set : verdict.automatic) lines.push_back(set_line(set));
  return lines;
}

namespace {

std::string data_name(const config::DatasetConfig& dataset) {
  if (!dataset.blend_per_split.empty()) {
    return text("splits {}", fmt::join(dataset.blend_per_split, " "));
  }
  return dataset.blend.empty() ? dataset.path : text("blend of {}", fmt::join(dataset.blend, " "));
}

}  // namespace

std::vector<std::string> start_lines(const config::Config& config, const train::RunStart& start) {
  std::string data = "data      mock tokens, without an end";
  if (start.tokens) {
    const auto samples = static_cast<double>(config.train.train_iters) *
                         static_cast<double>(config.train.global_batch_size);
    data = text(
        "data      {} ({}): {}, {} for training, {} held out{}; {} {} {:.2f} "
        "epochs",
        data_name(config.dataset),
        config::word(config.dataset.kind),
        counted(static_cast<std::int64_t>(*start.tokens), "token"),
        counted(static_cast<std::int64_t>(start.train_samples), "sample"),
        start.eval_samples,
        start.test_samples > 0 ? text(", {} for the test", start.test_samples) : "",
        counted(config.train.train_iters, "step"),
        config.train.train_iters == 1 ? "reads" : "read",
        samples / static_cast<double>(start.train_samples));
  }
  std::vector<std::string> lines{data};
  for (const train::RunStart::EvaluationSet& set : start.evaluation) {
    lines.push_back(text("eval      {}: {}",
                         set.name,
                         counted(static_cast<std::int64_t>(set.samples), "sample")));
  }
  lines.push_back(text("run       {}", start.run_dir.string()));
  return lines;
}

std::vector<std::string> opening_warnings(const config::Config& config) {
  std::vector<std::string> warnings;
  if (config.runtime.backend == config::CommBackend::Fake) {
    warnings.push_back(
        "a pretended world (runtime.backend=fake): rank 0 runs alone and its peers are taken to "
        "hold and send what it does; losses, speed and waiting times are not those of a run");
  }
  if (config.runtime.backend == config::CommBackend::Loopback) {
    const bool emulated = !derive::fabric_of(config).is_free();
    warnings.push_back(
        text("a pretended world (runtime.backend=loopback): rank 0 runs alone, and what it sends "
             "returns to it {} as if its peers had sent it; shapes, memory and bytes are those of "
             "a run, losses and what it learns are not",
             emulated ? "over emulated links" : "from host memory"));
  }
  const std::int64_t threads = derive::layout_of(config).world * config.runtime.threads_per_rank;
  const auto cores = static_cast<std::int64_t>(base::usable_cores().size());
  const bool on_cpu = config.runtime.device == config::DeviceKind::Cpu;
  if (on_cpu && config.runtime.backend == config::CommBackend::Threads && threads > cores) {
    warnings.push_back(text("{} of {} each share {}: a step takes the longer",
                            counted(derive::layout_of(config).world, "rank"),
                            counted(config.runtime.threads_per_rank, "thread"),
                            counted(cores, "core")));
  }
  return warnings;
}

std::vector<std::string> start_warnings(const config::Config& config,
                                        const train::RunStart& start) {
  if (!start.tokens ||
      static_cast<std::uint64_t>(config.train.global_batch_size) <= start.train_samples) {
    return {};
  }
  return {
      text("'{}' has {} for training, and a step reads "
           "train.global_batch_size={}: the same ones come several times in a step; use more "
           "data, a smaller batch or a shorter model.seq_length",
           data_name(config.dataset),
           counted(static_cast<std::int64_t>(start.train_samples), "sample"),
           config.train.global_batch_size)};
}

}  // namespace weft::cli
