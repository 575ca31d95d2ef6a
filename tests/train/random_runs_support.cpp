#include "random_runs_support.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"

namespace weft::train {

const std::string& Draw::any_of(const std::vector<std::string>& values) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(generator_)];
}

std::string Draw::size(int most) {
  std::vector<std::string> sizes;
  for (int i = 1; i <= most; i *= 2) sizes.push_back(std::to_string(i));
  return any_of(sizes);
}

Words draw_layout(Draw& draw, const WantedLayout& wanted) {
  const auto size = [&](int most, bool is_wanted) {
    return is_wanted ? draw.any_of(most == 2 ? std::vector<std::string>{"2"}
                                             : std::vector<std::string>{"2", "4"})
                     : draw.size(most);
  };
  const int most = wanted.all_axes ? 2 : 4;  // two of each make eight ranks already
  const std::string tp = size(most, wanted.all_axes), cp = size(most, wanted.all_axes);
  const std::string pp = size(most, wanted.all_axes || !wanted.schedule.empty());
  Words words{{"runtime.world_size", draw.size(wanted.most_ranks)},
              {"model.tensor_model_parallel_size", tp},
              {"model.context_parallel_size", cp},
              {"model.pipeline_model_parallel_size", pp},
              {"model.expert_model_parallel_size", draw.size(8)},
              {"model.expert_tensor_parallel_size", draw.any_of({"1", "1", "2"})}};
  if (tp != "1") {
    words.emplace_back("model.sequence_parallel", "true");
    words.emplace_back("comm_overlap.tp_comm_overlap", draw.either());
  }
  if (cp != "1") {
    words.emplace_back(
        "model.cp_comm_type",
        draw.any_of({"p2p", "all_gather", "a2a", "a2a+p2p", "[p2p,all_gather,a2a,a2a+p2p]"}));
    words.emplace_back("model.hierarchical_context_parallel_sizes", cp == "2" ? "[2,1]" : "[2,2]");
    words.emplace_back("comm_overlap.cp_comm_overlap", draw.either());
  }
  if (pp == "1") return words;
  const std::string schedule = wanted.schedule.empty()
                                   ? draw.any_of({"1f1b", "interleaved", "zb_h1", "dualpipev"})
                                   : wanted.schedule;
  words.emplace_back("runtime.pipeline_schedule", schedule);
  if (schedule == "interleaved") {
    words.emplace_back("model.virtual_pipeline_model_parallel_size", draw.any_of({"2", "4"}));
  } else if (schedule == "dualpipev") {
    words.emplace_back("model.virtual_pipeline_model_parallel_size", "2");
  } else {
    words.emplace_back("model.virtual_pipeline_model_parallel_size", "1");
    const std::string early = draw.either();
    words.emplace_back("comm_overlap.overlap_p2p_comm", early);
    words.emplace_back("comm_overlap.batch_p2p_comm", early == "true" ? "false" : "true");
  }
  return words;
}

std::string value_of(const Words& words, const std::string& key) {
  const auto found = std::ranges::find(words, key, &Words::value_type::first);
  return found == words.end() ? "" : found->second;
}

void draw_dispatcher(Draw& draw, Words& words) {
  const std::string dispatcher = draw.any_of({"alltoall", "allgather", "flex"});
  words.emplace_back("model.moe_token_dispatcher_type", dispatcher);
  if (dispatcher != "flex") return;
  words.emplace_back("model.moe_flex_dispatcher_backend", draw.any_of({"deepep", "hybridep"}));
  words.emplace_back("runtime.ranks_per_node", draw.size(4));
}

void draw_overlap(Draw& draw, Words& words) {
  const std::string overlap = draw.either();
  words.emplace_back("comm_overlap.overlap_moe_expert_parallel_comm", overlap);
  if (overlap == "true") words.emplace_back("comm_overlap.delay_wgrad_compute", draw.either());
  words.emplace_back("comm_overlap.moe_token_slices", draw.any_of({"1", "1", "2"}));
  // Each is refused beside some others, and drawn rarely, so that the others are drawn too.
  const auto seldom = [&](const char* key) {
    if (draw.any_of({"true", "false", "false"}) == "true") words.emplace_back(key, "true");
  };
  if (overlap == "false") {
    seldom("model.moe_shared_expert_overlap");
    seldom("model.overlap_dispatch_backward_with_experts_wgrad");
  }
  seldom("model.overlap_p2p_comm_warmup_flush");
  seldom("comm_overlap.defer_embedding_wgrad_compute");
  if (words.back().first == "comm_overlap.defer_embedding_wgrad_compute") {
    words.emplace_back("comm_overlap.wgrad_deferral_limit", draw.any_of({"0", "1", "2"}));
  }
  words.emplace_back("fabric.jitter_us", draw.any_of({"0", "100"}));
}

void draw_data_parallel(Draw& draw, Words& words) {
  if (draw.either() == "false") return;
  for (const char* key : {"ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"}) {
    words.emplace_back(key, "true");
  }
  words.emplace_back("comm_overlap.overlap_grad_reduce", draw.either());
  words.emplace_back("comm_overlap.overlap_param_gather", draw.either());
  words.emplace_back("comm_overlap.align_param_gather", draw.either());
  words.emplace_back("comm_overlap.overlap_param_gather_with_optimizer_step", draw.either());
  words.emplace_back("ddp.average_in_collective", draw.either());
  words.emplace_back("ddp.num_distributed_optimizer_instances", draw.any_of({"1", "1", "2", "4"}));
  const std::string size = draw.any_of({"1000", "100000", ""});
  if (!size.empty()) {
    words.emplace_back("comm_overlap.bucket_size", size);
  } else {
    words.emplace_back("ddp.num_buckets", draw.any_of({"1", "3"}));
  }
}

void draw_optimizer_offload(Draw& draw, Words& words) {
  if (draw.either() == "false") return;
  words.emplace_back("optimizer.optimizer_cpu_offload", "true");
  words.emplace_back("optimizer.optimizer_offload_fraction", draw.any_of({"0.3", "1"}));
  words.emplace_back("optimizer.overlap_cpu_optimizer_d2h_h2d", draw.either());
  words.emplace_back("runtime.optimizer_offload_bucket_size", draw.any_of({"700", "20000"}));
}

config::Config with_words(config::Config config, const Words& words) {
  for (const auto& [key, value] : words) {
    const config::Field* field = config::find_field(key);
    EXPECT_TRUE(field != nullptr && field->set(config, config::written_from_text(*field, value)))
        << key << "=" << value;
  }
  return config;
}

std::string text_of(const Words& words) {
  std::string all;
  for (const auto& [key, value] : words) all += key + "=" + value + " ";
  return all;
}

bool is_legal(const config::Config& config) {
  const rules::Verdict verdict = rules::judge(config);
  for (const config::Finding& error : verdict.errors) {
    EXPECT_FALSE(error.id.empty() || error.fix.empty()) << config::to_text(error);
    EXPECT_TRUE(error.message.find_first_of("0123456789") != std::string::npos)
        << config::to_text(error);
  }
  return verdict.judged.has_value() &&
         std::ranges::all_of(verdict.automatic, [&](const config::Finding& set) {
           return config::is_default(*config::find_field(set.key), config);
         });
}

}  // namespace weft::train
