// SPDX-License-Identifier: Apache-2.0
// What the tests of this part share.
#ifndef WARPCACHE_SIM_SIMT_TEST_SUPPORT_H_
#define WARPCACHE_SIM_SIMT_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "simt/estimate.h"
#include "simt/read_graph.h"

namespace warpcache::simt {

inline std::string file_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in) << path;
  return text.str();
}

inline std::string test_file(const std::string& name) {
  return file_text(std::string(WARPCACHE_SIMT_FOLDER) + "/testdata/" + name);
}

inline std::string example(const std::string& name) {
  return file_text(std::string(WARPCACHE_SIMT_FOLDER) + "/examples/" + name);
}

inline Graph graph_of(const std::string& text) {
  Graph graph;
  std::string why;
  EXPECT_TRUE(read_graph(text, &graph, &why)) << why;
  return graph;
}

inline Model model_of(const std::string& json, const Graph& graph) {
  Model model;
  std::string why;
  EXPECT_TRUE(read_model(json, graph, find_loops(graph), &model, &why)) << why;
  return model;
}

// {"branches": `branches`} with its format.
inline Model model_with(const std::string& branches, const Graph& graph) {
  return model_of("{\"format\": \"warpcache-branch-profile-1\", \"branches\": " + branches + "}",
                  graph);
}

inline Result run_of(const Graph& graph, const Model& model, const RunOptions& options) {
  Result result;
  std::string why;
  EXPECT_TRUE(run_passes(graph, find_loops(graph), model, options, nullptr, &result, &why)) << why;
  return result;
}

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_TEST_SUPPORT_H_
