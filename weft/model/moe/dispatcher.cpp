#include "weft/model/moe/dispatcher.h"

#include "weft/base/check.h"
#include "weft/model/moe/allgather.h"
#include "weft/model/moe/alltoall.h"
#include "weft/model/moe/flex.h"

namespace weft::model {

void merge_rows(const Context& context,
                const Tensor& y_TD,
                const Tensor& h_TD,
                const Tensor& returned_RD,
                const Tensor& rows_Tm) {
  if (context.config.moe_permute_fusion) {
    kernels::sum_rows(context.stream, y_TD, returned_RD, rows_Tm, h_TD);
    return;
  }
  kernels::sum_rows(context.stream, y_TD, returned_RD, rows_Tm);
  kernels::add(context.stream, y_TD, y_TD, h_TD);
}

std::unique_ptr<Dispatcher> make_dispatcher(const config::ModelConfig& config,
                                            const EpGroups& groups,
                                            config::RowBudget budget) {
  switch (config.moe_token_dispatcher_type) {
    case config::Dispatcher::AllGather:
      return std::make_unique<AllGather>(config, groups.ep);
    case config::Dispatcher::Flex:
      return std::make_unique<Flex>(config, groups, budget);
    case config::Dispatcher::AllToAll:
      return std::make_unique<AllToAll>(config, groups.ep);
    case config::Dispatcher::AllToAllSeq:
      break;
  }
  UNREACHABLE("dispatcher {} is not built", config::word(config.moe_token_dispatcher_type));
}

}  // namespace weft::model
