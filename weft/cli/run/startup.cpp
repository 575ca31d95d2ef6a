#include "weft/cli/run/startup.h"

#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/cli/output.h"
#include "weft/derive/derived.h"
#include "weft/report/run_layout.h"
#include "weft/rules/parallel/overlap_modes.h"
#include "weft/schedule/text/offload_text.h"

namespace weft::cli {
namespace {

using base::counted;
using base::text;

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
  std::vector<std::string> lines{text("weft: {}: {}", name, report::model_text(config)),
                                 "ranks     " + report::ranks_text(config),
                                 "batch     " + report::batch_text(config),
                                 "rate      " + report::rate_text(config),
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

// One line per section of keys.
std::vector<std::string> continuing_lines(const std::vector<config::Finding>& automatic) {
  std::vector<std::string> lines;
  std::string section;
  for (const config::Finding& set : automatic) {
    const std::string of = set.key.substr(0, set.key.find('.'));
    if (lines.empty()) lines.push_back("defaults  of a run that continues a model, not said here:");
    if (of != section) lines.push_back("         ");
    section = of;
    const bool is_text = set.to.is_string();
    lines.back() += text(" {}={}", set.key, is_text ? set.to.get<std::string>() : set.to.dump());
  }
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
        "data      {} ({}): {}{}, {} for training, {} held out{}; {} {} {:.2f} "
        "epochs",
        data_name(config.dataset),
        config::word(config.dataset.kind),
        start.data_remark.empty() ? "" : start.data_remark + ": ",
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
  const std::string& start = config.checkpoint.pretrained_checkpoint;
  if (!start.empty() && config.dataset.kind == config::DataKind::Mock) {
    warnings.push_back(
        text("the weights of '{}' are trained on mock tokens, which are noise: name data with "
             "dataset.path (`weft data import` makes token ids of text)",
             start));
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
