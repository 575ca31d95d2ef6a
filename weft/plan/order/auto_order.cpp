#include "weft/plan/order/auto_order.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/plan/price/price.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace {

using base::text;

struct OrderSwitches {
  const char* name;
  bool overlap, delay;
};

// Orders in the sequence of train/guard/order_choice.h.
constexpr OrderSwitches kAutoOrders[] = {{"plain", false, false},
                                         {"overlap", true, false},
                                         {"overlap + delayed wgrad", true, true}};

}  // namespace

std::vector<AutoOrder> auto_orders(const config::Config& asked,
                                   const Hardware& hardware,
                                   const Routing& routing) {
  std::vector<AutoOrder> orders;
  const bool is_given = !asked.runtime.schedule.empty();
  if (!asked.comm_overlap.overlap_moe_expert_parallel_comm.automatic || is_given) return orders;
  for (const OrderSwitches& switches : kAutoOrders) {
    AutoOrder order{.name = switches.name, .config = asked, .step_ms = 0, .refusal = {}};
    order.config.comm_overlap.overlap_moe_expert_parallel_comm = switches.overlap;
    order.config.comm_overlap.delay_wgrad_compute = switches.delay;
    const rules::Verdict verdict = rules::judge(order.config);
    if (verdict.legal()) {
      order.step_ms = price_step(verdict.config, hardware, routing).step_ms;
    } else {
      order.refusal = config::to_text(verdict.errors.front());
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

const AutoOrder& fastest(const std::vector<AutoOrder>& orders) {
  const AutoOrder* best = &orders.front();
  for (const AutoOrder& order : orders) {
    if (!order.refusal.empty()) continue;
    if (!best->refusal.empty() || order.step_ms < best->step_ms) best = &order;
  }
  return *best;
}

base::Json to_json(const std::vector<AutoOrder>& orders) {
  base::Json list = base::Json::array();
  for (const AutoOrder& order : orders) {
    base::Json json{{"name", order.name}, {"taken", &order == &fastest(orders)}};
    json["step_ms"] = order.refusal.empty() ? base::Json(order.step_ms) : base::Json(nullptr);
    if (!order.refusal.empty()) json["refusal"] = order.refusal;
    list.push_back(std::move(json));
  }
  return list;
}

std::string to_text(const std::vector<AutoOrder>& orders) {
  std::vector<std::string> words;
  for (const AutoOrder& order : orders) {
    words.push_back(order.refusal.empty() ? text("{} {:.5g} ms", order.name, order.step_ms)
                                          : text("{} refused ({})", order.name, order.refusal));
  }
  return text("order       {} of auto is taken: {}; a run measures them in its first steps\n",
              fastest(orders).name,
              fmt::join(words, ", "));
}

}  // namespace weft::plan
