#include "weft/plan/search/own_layout.h"

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/order/auto_order.h"
#include "weft/plan/price/run_modes.h"
#include "weft/plan/search/layout_keys.h"
#include "weft/plan/search/search.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

std::string dispatcher_word(const config::ModelConfig& model) {
  if (model.moe_token_dispatcher_type == config::Dispatcher::Flex &&
      model.moe_flex_dispatcher_backend) {
    return std::string(config::word(*model.moe_flex_dispatcher_backend));
  }
  return std::string(config::word(model.moe_token_dispatcher_type));
}

std::string layout_of_config(const Config& config) {
  const config::ModelConfig& model = config.model;
  std::string all = text("tp {}, pp {}, vpp {}, cp {}, ep {}, etp {}, mbs {}",
                         model.tensor_model_parallel_size,
                         model.pipeline_model_parallel_size,
                         model.virtual_pipeline_model_parallel_size.value_or(1),
                         model.context_parallel_size,
                         model.expert_model_parallel_size,
                         model.experts() > 0 ? model.expert_shards() : 1,
                         config.train.micro_batch_size);
  if (model.experts() > 0) all += ", " + dispatcher_word(model);
  for (const RunMode mode : modes_of(config)) all += text(", {}", word(mode));
  return all;
}

bool is_comparable(const OwnLayout& own, const Price* best) {
  return best && own.price && own.price->memory.fits();
}

}  // namespace

OwnLayout own_layout(const Config& asked, const LayoutSpace& space) {
  // If the config leaves the order to the run, take the order that the run would choose.
  const std::vector<AutoOrder> orders = auto_orders(asked, space.hardware(), space.routing());
  const rules::Verdict verdict = rules::judge(orders.empty() ? asked : fastest(orders).config);
  OwnLayout own{.config = verdict.config, .layout = layout_of_config(verdict.config)};
  if (!verdict.legal()) {
    const config::Finding& error = verdict.errors.front();
    own.refusal = text("rule {}: {}", error.id, error.message);
    return own;
  }
  own.price = price_run(own.config, space.hardware(), space.routing(), space.shown());
  return own;
}

std::string to_text(const OwnLayout& own, const Trust& trust, const Price* best) {
  const std::string name = own.name.empty() ? "" : text(" ({})", base::shown(own.name));
  std::string all = text("Your {}{}: {}\n  ", own.is_line ? "line" : "recipe", name, own.layout);
  if (!own.price) return all + text("not possible here: {}\n", own.refusal);
  const Price& price = *own.price;
  const std::string band = band_text(trust);
  all += text("{}, {} TFLOP/s/GPU{}",
              time_text(price.step_ms),
              rate_text(price.tflops_per_gpu),
              band.empty() ? "" : text(" ({})", band));
  if (!price.memory.fits()) {
    return all + text("; it does not fit: it needs {}\n", lack_text(price.memory));
  }
  if (!best) return all + "\n";
  return all + text("; the best below: {}, {} TFLOP/s/GPU, {:.2f} times as fast\n",
                    time_text(best->step_ms),
                    rate_text(best->tflops_per_gpu),
                    price.step_ms / best->step_ms);
}

base::Json to_json(const OwnLayout& own, const Trust& trust, const Price* best) {
  base::Json json{{"name", own.name},
                  {"layout", own.layout},
                  {"keys", layout_keys(own.config)},
                  {"legal", own.refusal.empty()},
                  {"refusal", own.refusal},
                  {"fits", own.price && own.price->memory.fits()},
                  {"step_ms", nullptr},
                  {"tflops_per_gpu", nullptr},
                  {"best_times_as_fast", nullptr}};
  if (!own.price) return json;
  json.update(to_json(*own.price));
  json.update(to_json(trust));
  json["fits"] = own.price->memory.fits();
  if (is_comparable(own, best)) json["best_times_as_fast"] = own.price->step_ms / best->step_ms;
  return json;
}

}  // namespace weft::plan
