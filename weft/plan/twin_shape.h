// How a twin gets smaller: ranks, layers, widths, batch, in this order. See twin.h for what stays.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// A twin in the making: the config so far, and why each changed key changed.
struct TwinDraft {
  config::Config config;
  std::map<std::string, std::string> why;
  std::vector<std::string> given_up = {};  // see Twin

  template <typename T>
  void set(const char* key, T& field, T value, const std::string& reason) {
    if (field == value) return;
    field = std::move(value);
    why[key] = reason;
  }
};

// `model` is the config the twin is of.
void shrink_ranks(const config::Config& model, TwinDraft& draft);
void shrink_layers(const config::Config& model, TwinDraft& draft);
void shrink_widths(const config::Config& model, TwinDraft& draft);
void shrink_batch(const config::Config& model, TwinDraft& draft);

}  // namespace weft::plan
