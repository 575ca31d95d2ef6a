#include "weft/report/about.h"

#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/report/run_layout.h"

namespace weft::report {
namespace {

using base::text;

std::string weights_text(const config::Config& run) {
  const config::CheckpointConfig& checkpoint = run.checkpoint;
  if (!checkpoint.load.empty()) return "from the checkpoint in " + checkpoint.load;
  if (!checkpoint.pretrained_checkpoint.empty()) return "from " + checkpoint.pretrained_checkpoint;
  return text("random (rng.seed={})", run.rng.seed);
}

std::string machine_words(const config::Config& run, const Evidence& evidence) {
  if (evidence.origin == Evidence::Origin::Simulated) {
    const std::string gpu = derive::gpu_facts(run.hardware).name;
    return gpu.empty() ? "none: the step was simulated"
                       : gpu + "; none ran: the step was simulated";
  }
  if (evidence.starts.empty()) return "not known: the run's folder does not say";
  const std::string words = machine_text(evidence.starts.back());
  const bool is_one = evidence.starts.size() == 1;
  return words + (is_one ? "" : text(" (the last of {} starts)", evidence.starts.size()));
}

std::string starts_text(const std::vector<Start>& starts) {
  std::vector<std::string> all;
  for (const Start& start : starts) {
    all.push_back(start.step == 0 ? start.time : text("{} from step {}", start.time, start.step));
  }
  return text("{}", fmt::join(all, ", "));
}

}  // namespace

std::vector<Fact> about_run(const config::Config& run, const Evidence& evidence) {
  std::vector<Fact> facts{{"model", model_text(run)},
                          {"ranks", ranks_text(run)},
                          {"batch", batch_text(run)},
                          {"rate", rate_text(run)},
                          {"weights", weights_text(run)},
                          {"machine", machine_words(run, evidence)}};
  if (evidence.starts.empty()) return facts;
  const Start& last = evidence.starts.back();
  facts.push_back({"weft", text("{}, {} build", last.version, last.build)});
  facts.push_back({"started", starts_text(evidence.starts)});
  return facts;
}

std::string crowding_of(const config::Config& run, const std::vector<Start>& starts) {
  const bool on_cpu = run.runtime.device == config::DeviceKind::Cpu;
  if (!on_cpu || starts.empty() || config::is_pretended(run.runtime.backend)) return "";
  const std::int64_t cores = starts.back().cores, ranks = derive::layout_of(run).world;
  const bool is_one_machine = run.runtime.backend == config::CommBackend::Threads ||
                              run.runtime.ranks_per_node.value_or(ranks) >= ranks;
  if (cores == 0 || !is_one_machine || ranks * run.runtime.threads_per_rank <= cores) return "";
  return text(
      "{} of {} each share {}: a rank that waits for a core looks as if it waited for its peers or "
      "for the host, so that walls and exposure say little about the layout",
      base::counted(ranks, "rank"),
      base::counted(run.runtime.threads_per_rank, "thread"),
      base::counted(cores, "core"));
}

}  // namespace weft::report
