// All-to-all dispatcher: one row per (token, expert) pair travels to the rank that owns the expert,
// with its probability; the expert's output travels back. Rows are sent in order of the global
// expert and arrive in order of the local one. Each expert's rows are a message of their own.
// Counts alone therefore identify the rows, and no copy sorts them.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

class AllToAll final : public Dispatcher {
 public:
  AllToAll(const config::ModelConfig& config, comm::Communicator& ep);

  std::int64_t counts() const override { return padded_ ? 0 : grid().experts; }
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
  const bool padded_;  // drop-and-pad: every rank sends every expert exactly its capacity of rows
};

}  // namespace weft::model
