// All-gather dispatcher: every rank gets all tokens of its group with their choices, and picks
// those of its own experts. Outputs are summed over ranks on the way back. Traffic does not depend
// on the routing: suited to few ranks, or to tokens that choose most experts.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

class AllGather final : public Dispatcher {
 public:
  AllGather(const config::ModelConfig& config, comm::Communicator& ep);

  std::int64_t counts() const override { return padded_ ? 0 : ep_.size(); }
  void plan_on_host(DispatchState&, const Tensor& shown_GN) const override;

  void dispatch_forward(const Context&, DispatchState&) const override;
  ExpertRows arrange_forward(const Context&, DispatchState&) const override;
  void restore_forward(const Context&, DispatchState&, const Tensor&) const override;
  void combine_forward(const Context&, DispatchState&) const override;
  void merge_forward(const Context&,
                     DispatchState&,
                     const Tensor& y_TD,
                     const Tensor& h_TD) const override;

  void restore_dgrad(const Context&, DispatchState&, const Tensor&, const Tensor&) const override;
  void dispatch_dgrad(const Context&, DispatchState&) const override;

 private:
  void lay_out_rows(const Context&, DispatchState&, const Routed&, const Tensor&) const override;
  void permute_rows(const Context&, DispatchState&, const Routed&) const override;
  Tensor wire_rows(const Context&, const DispatchState&, const Tensor& x_TD) const override;
  Tensor rows_at_experts(const Context&, const DispatchState&, const Tensor&) const override;
  Tensor rows_by_expert(const Context&, const DispatchState&, const Tensor&) const override;
  void permute_rows_dgrad(const Context&, DispatchState&, const RoutedGradient&) const override;

  const config::ModelConfig& config_;
  comm::Communicator& ep_;
  const bool padded_;  // drop-and-pad: every expert has exactly its capacity of rows
};

}  // namespace weft::model
