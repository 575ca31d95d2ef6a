#include "tests/schedule/models_support.h"

#include <gtest/gtest.h>

#include <map>

#include "weft/base/error.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {

config::ModelConfig model_of(const std::string& layers, std::int64_t ep) {
  config::ModelConfig model;
  model.num_layers = static_cast<std::int64_t>(layers.size());
  if (layers.find('m') != std::string::npos) model.num_moe_experts = 8;
  model.moe_layer_freq.clear();
  for (const char layer : layers) model.moe_layer_freq.push_back(layer == 'm' ? 1 : 0);
  model.expert_model_parallel_size = ep;
  return model;
}

config::ModelConfig tied_model_of(const std::string& layers, std::int64_t ep) {
  config::ModelConfig model = model_of(layers, ep);
  model.share_embeddings_and_output_weights = true;
  return model;
}

Reach::Reach(const Graph& graph) {
  const std::size_t n = graph.entries.size();
  std::vector<std::vector<std::size_t>> next(n);
  // Next entry of each lane; later ones are reached through it.
  std::map<Lane, std::size_t> ahead;
  for (std::size_t i = n; i-- > 0;) {
    const Lane lane = graph.entries[i].lane;
    for (const auto& [other, entry] : ahead) {
      if (other == lane || lane == Lane::Host) next[i].push_back(entry);
    }
    ahead[lane] = i;
    for (const int wait : graph.entries[i].waits) next[static_cast<std::size_t>(wait)].push_back(i);
  }
  reached_.assign(n, std::vector<bool>(n, false));
  for (std::size_t first = 0; first < n; ++first) {
    std::vector<std::size_t> open = next[first];
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      if (reached_[first][i]) continue;
      reached_[first][i] = true;
      open.insert(open.end(), next[i].begin(), next[i].end());
    }
  }
}

std::size_t find(const Graph& graph, const std::string& node) {
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    if (print(graph.entries[i].node) == node) return i;
  }
  ADD_FAILURE() << "no node " << node;
  return 0;
}

bool run_together(const Graph& graph, const std::string& a, const std::string& b) {
  const Reach reach(graph);
  const std::size_t first = find(graph, a), second = find(graph, b);
  return !reach.before(first, second) && !reach.before(second, first);
}

Graph without_entry(const Graph& graph, std::size_t entry) {
  Graph result;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    if (i == entry) continue;
    Entry kept = graph.entries[i];
    std::erase(kept.waits, static_cast<int>(entry));
    for (int& wait : kept.waits) wait -= wait > static_cast<int>(entry) ? 1 : 0;
    result.entries.push_back(std::move(kept));
  }
  return result;
}

Graph with_swapped(const Graph& graph, std::size_t i) {
  Graph result = graph;
  std::swap(result.entries[i], result.entries[i + 1]);
  const int first = static_cast<int>(i);
  for (Entry& entry : result.entries) {
    for (int& wait : entry.waits) {
      if (wait == first) {
        wait = first + 1;
      } else if (wait == first + 1) {
        wait = first;
      }
    }
  }
  return result;
}

std::string node_complaint(const std::string& text) {
  try {
    parse_node(text);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string graph_complaint(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> sentences(const std::vector<Fault>& faults) {
  std::vector<std::string> all;
  for (const Fault& fault : faults) all.push_back(fault.what);
  return all;
}

bool contains(const std::vector<std::string>& complaints, const std::string& part) {
  return std::ranges::any_of(complaints, [&](const std::string& complaint) {
    return complaint.find(part) != std::string::npos;
  });
}

bool contains(const std::vector<Fault>& faults, const std::string& part) {
  return contains(sentences(faults), part);
}

}  // namespace weft::schedule
