// SPDX-License-Identifier: Apache-2.0
// How threads decide at branches: probabilities or counts per branch, loops by iteration, the share
// that the lanes of a warp have in common, and classes of threads that differ in all of these.
// docs/simulators/cfg-sim.md describes the file.
#ifndef WARPCACHE_SIM_SIMT_MODEL_H_
#define WARPCACHE_SIM_SIMT_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/analysis.h"
#include "simt/graph.h"
#include "simt/rounds.h"

namespace warpcache::simt {

// One branch, for one class of threads.
struct Branch {
  // Of each successor, in the block's order. They make 1.
  std::vector<double> probability;
  // Of a branch that leaves a loop: how probable staying is in the k-th iteration since the loop
  // was entered, k from 1; the last goes on for ever. Empty: `probability` at all times.
  std::vector<double> stay;
  // Of a branch in a loop: `probability` in an iteration, by turn_key(). What is not there is as in
  // the iteration of whatever loop is around it, else as `probability`.
  std::unordered_map<uint64_t, std::vector<double>> turns;

  bool is_loop() const { return !stay.empty(); }
};

// The iteration of the innermost loop around a branch, and of the loop around that (0: of any).
// Iterations count from 1, and those beyond kTurnsMax are treated alike.
inline constexpr uint32_t kTurnsMax = 4096;
constexpr uint64_t turn_key(uint32_t inner, uint32_t outer) {
  const auto capped = [](uint32_t turn) { return turn < kTurnsMax ? turn : kTurnsMax; };
  return uint64_t{capped(outer)} << 32 | capped(inner);
}

// A branch in a model's file.
struct BranchModel {
  std::vector<Branch> classes;  // one for each class of the model
  // The correlation of two lanes' outcomes, 0 to 1: a lane follows its warp's outcome with a
  // probability of sqrt(rho) and decides for itself otherwise. Which of the two a lane does holds
  // for a whole pass.
  double rho = 0;
  // A thread's first outcome is all its later ones of the pass, and so is the warp's.
  bool held = false;
  // A vote: where any lane wants to go the way of this number, all of the group go. Their wishes
  // are one draw, each by its class's probability. kNone: no vote.
  uint32_t vote = kNone;
  // Of a group exactly one lane, the first, goes the way of this number. kNone: no such branch.
  uint32_t one = kNone;
  // A lane goes the way of this number when it comes here for the n-th time, n its round
  // (rounds.h), and the other way else. Lanes of classes that `rounds` does not know go as their
  // class does.
  uint32_t round = kNone;
  // The warp goes the way of this number while some lane's round is still to come.
  uint32_t more_rounds = kNone;
};

struct ThreadClass {
  std::string name;
  double weight;  // they make 1
};

struct Model {
  std::vector<ThreadClass> classes;   // never empty
  double class_rho = 0;               // as BranchModel::rho, for the class that a lane is of
  Rounds rounds;                      // sizes below 0: of classes that have none
  std::vector<BranchModel> branches;  // per block; without classes where there is one successor
};

// The name of a successor in files: a block's, "exit" or "return".
std::string successor_name(const Graph& graph, uint32_t to);

// Equal probabilities everywhere: the assumption without a profile. Keeps the weights of the
// graph's edges.
Model equal_model(const Graph& graph);

// Reads a model's JSON. Branches that it does not name are as in equal_model(). False: `why` says
// what is wrong.
bool read_model(const std::string& json, const Graph& graph, const Loops& loops, Model* out,
                std::string* why);

// One profile of several, each of which becomes a class of its own and of equal weight. `profiles`:
// names and JSON texts without classes. False: `why` says which is no such profile.
bool merge_profiles(const std::vector<std::pair<std::string, std::string>>& profiles,
                    std::string* json, std::string* why);

// Adds to what merge_profiles() has made: where nothing is known of the first of two classes, it
// does what the second does. False: `why` says which is no class.
bool liken(const std::vector<std::pair<std::string, std::string>>& likes, std::string* json,
           std::string* why);

// The whole text is a number.
bool parse_number(std::string_view text, double* out);

// "NAME=NUMBER,...", no number below 0. False: it is not.
bool parse_numbers(const std::string& text, std::vector<std::pair<std::string, double>>* out);

// "CLASS=WEIGHT,..." for these classes; who is not named weighs nothing. They make 1.
bool parse_weights(const std::string& text, const std::vector<std::string>& classes,
                   std::vector<double>* out, std::string* why);

// Replaces the classes' weights: "NAME=WEIGHT,...". Classes that are not named weigh nothing.
bool reweight(const std::string& weights, Model* model, std::string* why);

// Which edges some thread of some class may take. Where a block of a loop says "stay", by its
// probabilities at all iterations.
EdgeSet edges_taken(const Graph& graph, const Model& model, const Loops& loops);

// Sets the branches to equal probabilities again, except that edges never taken stay so: the
// dissertation's "augmented" view (section 3.4.2).
Model augmented_model(const Graph& graph, const EdgeSet& taken);

// The distribution of a number of times that a loop's branch stays, as stay-probabilities:
// "9", "uniform:0:20", "geometric:0.9", "4+geometric:0.5". False: none of these.
bool parse_trips(const std::string& text, std::vector<double>* stay);

// From how often each number of trips occurs. `weights[n]`: of n trips.
std::vector<double> stay_from_trips(const std::vector<double>& weights);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_MODEL_H_
