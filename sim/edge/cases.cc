// SPDX-License-Identifier: Apache-2.0
#include "edge/cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "edge/get_case.h"
#include "edge/kernels/sizes.h"

namespace warpcache::edge_sim {
namespace {

constexpr double kScaleMax = 64;

using Random = std::mt19937_64;

float unit(Random& random) { return static_cast<float>(random() >> 40) * 0x1p-24f; }
uint32_t below(Random& random, uint32_t count) {
  return static_cast<uint32_t>((random() >> 32) * count >> 32);
}

float* random_floats(Case* out, Random& random, size_t count) {
  float* const data = out->allocate<float>(count);
  for (size_t i = 0; i < count; ++i) data[i] = unit(random);
  return data;
}

std::string compare(const char* what, const float* got, const std::vector<float>& wanted,
                    double error) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::fabs(got[i] - wanted[i]) <= error * std::max(1.0f, std::fabs(wanted[i]))) continue;
    return fmt::format("{} {} is {}, the reference has {}", what, i, got[i], wanted[i]);
  }
  return "";
}

std::string compare(const char* what, const int* got, const std::vector<int>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] != wanted[i])
      return fmt::format("{} {} is {}, the reference has {}", what, i, got[i], wanted[i]);
  }
  return "";
}

// About `scale` times the usual number of tiles in a square grid of them.
uint32_t square_side(uint32_t usual, double scale) {
  return std::max(1u, static_cast<uint32_t>(std::lround(usual * std::sqrt(scale))));
}
uint32_t scaled(uint32_t usual, double scale) {
  return std::max(1u, static_cast<uint32_t>(std::lround(usual * scale)));
}

void set_grid(Launch* launch, uint32_t x, uint32_t y, uint32_t block_x, uint32_t block_y) {
  *launch = Launch{x, y, block_x, block_y, {}};
}

void make_matmul(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t tiles = square_side(8, options.scale), n = tiles * kTile;
  const float* const a = random_floats(out, random, n * n);
  const float* const b = random_floats(out, random, n * n);
  float* const c = out->allocate<float>(n * n);
  set_grid(&out->launch, tiles, tiles, kTile, kTile);
  out->launch.push(a), out->launch.push(b), out->launch.push(c),
      out->launch.push(static_cast<int>(n));
  out->check = [=] {
    std::vector<float> wanted(n * n);
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t k = 0; k < n; ++k) {
        for (uint32_t j = 0; j < n; ++j) wanted[i * n + j] += a[i * n + k] * b[k * n + j];
      }
    }
    return compare("element", c, wanted, 1e-4);
  };
}

void make_conv(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t tiles = square_side(8, options.scale), channels = 3;
  const uint32_t out_side = tiles * kTile, side = out_side + kFilterSide - 1;
  const uint32_t weights = kFilterSide * kFilterSide;
  const float* const image = random_floats(out, random, channels * side * side);
  const float* const filters = random_floats(out, random, channels * kFilters * weights);
  float* const result = out->allocate<float>(kFilters * out_side * out_side);
  set_grid(&out->launch, tiles, tiles, kTile, kTile);
  out->launch.push(image), out->launch.push(filters), out->launch.push(result);
  out->launch.push(static_cast<int>(side)), out->launch.push(static_cast<int>(channels));
  out->check = [=] {
    std::vector<float> wanted(kFilters * out_side * out_side);
    for (uint32_t at = 0; at < wanted.size(); ++at) {
      const uint32_t f = at / (out_side * out_side), y = at / out_side % out_side,
                     x = at % out_side;
      for (uint32_t c = 0; c < channels; ++c) {
        for (uint32_t i = 0; i < weights; ++i) {
          wanted[at] += image[(c * side + y + i / kFilterSide) * side + x + i % kFilterSide] *
                        filters[(c * kFilters + f) * weights + i];
        }
      }
    }
    return compare("pixel", result, wanted, 1e-4);
  };
}

void make_stencil(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t tiles = square_side(16, options.scale), inner = kTile - 4;
  const uint32_t side = tiles * inner, pitch = side + 4;
  const float* const in = random_floats(out, random, pitch * pitch);
  const float* const power = random_floats(out, random, pitch * pitch);
  float* const result = out->allocate<float>(pitch * pitch);
  set_grid(&out->launch, tiles, tiles, kTile, kTile);
  out->launch.push(in), out->launch.push(power), out->launch.push(result),
      out->launch.push(static_cast<int>(side));
  out->check = [=] {
    std::vector<float> now(in, in + pitch * pitch), next(pitch * pitch);
    for (uint32_t step = 1; step <= 2; ++step) {
      next.assign(pitch * pitch, 0);
      for (uint32_t y = step; y < pitch - step; ++y) {
        for (uint32_t x = step; x < pitch - step; ++x) {
          const uint32_t at = y * pitch + x;
          const float around = now[at - pitch] + now[at + pitch] + now[at - 1] + now[at + 1];
          next[at] = std::fmaf(0.2f, around - 4 * now[at], now[at]) + power[at];
        }
      }
      now.swap(next);
    }
    std::vector<float> wanted(pitch * pitch);
    for (uint32_t y = 2; y < pitch - 2; ++y) {
      for (uint32_t x = 2; x < pitch - 2; ++x) wanted[y * pitch + x] = now[y * pitch + x];
    }
    return compare("cell", result, wanted, 1e-5);
  };
}

void make_reduce(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t blocks = scaled(128, options.scale), each = kReduceThreads * kReduceItems;
  const float* const in = random_floats(out, random, size_t{blocks} * each);
  float* const sums = out->allocate<float>(blocks);
  set_grid(&out->launch, blocks, 1, kReduceThreads, 1);
  out->launch.push(in), out->launch.push(sums);
  out->check = [=] {
    std::vector<float> wanted(blocks);
    for (uint32_t b = 0; b < blocks; ++b) {
      double sum = 0;
      for (uint32_t i = 0; i < each; ++i) sum += in[size_t{b} * each + i];
      wanted[b] = static_cast<float>(sum);
    }
    return compare("sum", sums, wanted, 1e-4);
  };
}

// A frontier of a third of the nodes, another third visited; out-degrees of 1 to 12.
void make_bfs(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t blocks = scaled(64, options.scale), nodes = blocks * 256;
  int* const first = out->allocate<int>(nodes + 1);
  for (uint32_t i = 0; i < nodes; ++i)
    first[i + 1] = first[i] + 1 + static_cast<int>(below(random, 12));
  const auto count = static_cast<uint32_t>(first[nodes]);
  int* const edges = out->allocate<int>(count);
  for (uint32_t i = 0; i < count; ++i) edges[i] = static_cast<int>(below(random, nodes));
  int* const frontier = out->allocate<int>(nodes);
  int* const visited = out->allocate<int>(nodes);
  int* const cost = out->allocate<int>(nodes);
  int* const updated = out->allocate<int>(nodes);
  for (uint32_t i = 0; i < nodes; ++i) {
    const uint32_t kind = below(random, 3);
    frontier[i] = kind == 0, visited[i] = kind != 2, cost[i] = kind == 0 ? 3 : kind == 1 ? 2 : -1;
  }
  const std::vector<int> before(cost, cost + nodes);
  set_grid(&out->launch, blocks, 1, 256, 1);
  for (int* const array : {first, edges, frontier, visited, cost, updated}) out->launch.push(array);
  out->launch.push(static_cast<int>(nodes));
  out->check = [=] {
    std::vector<int> wanted = before;
    for (uint32_t i = 0; i < nodes; ++i) {
      for (int e = first[i]; frontier[i] != 0 && e < first[i + 1]; ++e) {
        if (visited[edges[e]] == 0) wanted[static_cast<size_t>(edges[e])] = 4;
      }
    }
    return compare("cost", cost, wanted);
  };
}

void make_kmeans(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t blocks = scaled(64, options.scale), count = blocks * 256, clusters = 5,
                 features = 12;
  const float* const points = random_floats(out, random, size_t{count} * features);
  const float* const centres = random_floats(out, random, clusters * features);
  int* const nearest = out->allocate<int>(count);
  set_grid(&out->launch, blocks, 1, 256, 1);
  out->launch.push(points), out->launch.push(centres), out->launch.push(nearest);
  for (const uint32_t number : {count, clusters, features})
    out->launch.push(static_cast<int>(number));
  out->check = [=] {
    std::vector<int> wanted(count);
    for (uint32_t i = 0; i < count; ++i) {
      float best = 3.4e38f;
      for (uint32_t c = 0; c < clusters; ++c) {
        float distance = 0;
        for (uint32_t f = 0; f < features; ++f) {
          const float d = points[f * count + i] - centres[c * features + f];
          distance = std::fmaf(d, d, distance);
        }
        if (distance < best) best = distance, wanted[i] = static_cast<int>(c);
      }
    }
    return compare("centre", nearest, wanted);
  };
}

void make_needle(const CaseOptions& options, Random& random, Case* out) {
  constexpr uint32_t kSide = kNeedleSide;
  const uint32_t tiles = scaled(256, options.scale);
  constexpr int kPenalty = 10;
  int* const reference = out->allocate<int>(size_t{tiles} * kSide * kSide);
  int* const borders = out->allocate<int>(size_t{tiles} * (2 * kSide + 1));
  int* const result = out->allocate<int>(size_t{tiles} * kSide * kSide);
  for (uint32_t i = 0; i < tiles * kSide * kSide; ++i)
    reference[i] = static_cast<int>(below(random, 20)) - 8;
  for (uint32_t i = 0; i < tiles * (2 * kSide + 1); ++i)
    borders[i] = -static_cast<int>(below(random, 300));
  set_grid(&out->launch, tiles, 1, kSide, 1);
  out->launch.push(reference), out->launch.push(borders), out->launch.push(result),
      out->launch.push(kPenalty);
  out->check = [=] {
    std::vector<int> wanted(size_t{tiles} * kSide * kSide);
    for (uint32_t t = 0; t < tiles; ++t) {
      const int* const border = borders + t * (2 * kSide + 1);
      const auto score = [&](uint32_t y, uint32_t x) {  // 0: the border
        if (y == 0) return border[x];
        if (x == 0) return border[kSide + y];
        return wanted[(t * kSide + y - 1) * kSide + x - 1];
      };
      for (uint32_t y = 1; y <= kSide; ++y) {
        for (uint32_t x = 1; x <= kSide; ++x) {
          const uint32_t at = (t * kSide + y - 1) * kSide + x - 1;
          const int corner = score(y - 1, x - 1) + reference[at];
          wanted[at] = std::max({corner, score(y, x - 1) - kPenalty, score(y - 1, x) - kPenalty});
        }
      }
    }
    return compare("score", result, wanted);
  };
}

// A suffix automaton of `text` over four letters: every substring is a path from state 0.
std::vector<MatchState> automaton_of(const std::vector<unsigned char>& text) {
  std::vector<MatchState> states(1, MatchState{{-1, -1, -1, -1}, -1, 0});
  int last = 0;
  for (const unsigned char letter : text) {
    const int added = static_cast<int>(states.size());
    states.push_back({{-1, -1, -1, -1}, 0, states[static_cast<size_t>(last)].length + 1});
    int at = last;
    for (; at >= 0 && states[static_cast<size_t>(at)].next[letter] < 0;
         at = states[static_cast<size_t>(at)].link) {
      states[static_cast<size_t>(at)].next[letter] = added;
    }
    if (at >= 0) {
      const int to = states[static_cast<size_t>(at)].next[letter];
      if (states[static_cast<size_t>(to)].length == states[static_cast<size_t>(at)].length + 1) {
        states[static_cast<size_t>(added)].link = to;
      } else {
        const int copy = static_cast<int>(states.size());
        MatchState twin = states[static_cast<size_t>(to)];
        twin.length = states[static_cast<size_t>(at)].length + 1;
        states.push_back(twin);
        for (; at >= 0 && states[static_cast<size_t>(at)].next[letter] == to;
             at = states[static_cast<size_t>(at)].link) {
          states[static_cast<size_t>(at)].next[letter] = copy;
        }
        states[static_cast<size_t>(to)].link = states[static_cast<size_t>(added)].link = copy;
      }
    }
    last = added;
  }
  return states;
}

// Queries of 20 to 60 letters: pieces of the reference, with a letter in ten changed.
void make_strings(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t blocks = scaled(32, options.scale), count = blocks * 256;
  std::vector<unsigned char> reference(8192);
  for (unsigned char& letter : reference) letter = static_cast<unsigned char>(below(random, 4));
  const std::vector<MatchState> built = automaton_of(reference);
  MatchState* const states = out->allocate<MatchState>(built.size());
  std::copy(built.begin(), built.end(), states);
  int* const first = out->allocate<int>(count + 1);
  for (uint32_t i = 0; i < count; ++i)
    first[i + 1] = first[i] + 20 + static_cast<int>(below(random, 41));
  auto* const queries = out->allocate<unsigned char>(static_cast<size_t>(first[count]));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t from = below(random, static_cast<uint32_t>(reference.size()) - 60);
    for (int at = first[i]; at < first[i + 1]; ++at) {
      const bool changed = below(random, 10) == 0;
      queries[at] = changed ? static_cast<unsigned char>(below(random, 4))
                            : reference[from + static_cast<uint32_t>(at - first[i])];
    }
  }
  int* const longest = out->allocate<int>(count);
  set_grid(&out->launch, blocks, 1, 256, 1);
  out->launch.push(states), out->launch.push(queries), out->launch.push(first),
      out->launch.push(longest);
  out->launch.push(static_cast<int>(count));
  out->check = [=] {  // of some queries, by search
    const std::string text(reference.begin(), reference.end());
    std::vector<int> wanted(longest, longest + count);
    for (uint32_t i = 0; i < count; i += 97) {
      const std::string query(queries + first[i], queries + first[i + 1]);
      size_t best = 0;
      for (size_t begin = 0; begin < query.size(); ++begin) {
        while (begin + best < query.size() &&
               text.find(query.substr(begin, best + 1)) != std::string::npos)
          ++best;
      }
      wanted[i] = static_cast<int>(best);
    }
    return compare("match", longest, wanted);
  };
}

void make_rays(const CaseOptions& options, Random& random, Case* out) {
  const uint32_t side = square_side(4, options.scale) * 32, count = 16, bounces = 3;
  Sphere* const spheres = out->allocate<Sphere>(count);
  for (uint32_t i = 0; i < count; ++i) {
    const float radius = 0.2f + 0.4f * unit(random);
    spheres[i] = {4 * unit(random) - 2, 4 * unit(random) - 2, 3 * unit(random), radius * radius};
  }
  float* const image = out->allocate<float>(size_t{side} * side);
  set_grid(&out->launch, side / 8, side / 4, 32, 1);
  out->launch.push(static_cast<const Sphere*>(spheres)), out->launch.push(image);
  for (const uint32_t number : {side, count, bounces}) out->launch.push(static_cast<int>(number));
  out->check = [=] {
    double sum = 0;
    for (uint32_t i = 0; i < side * side; ++i) {
      if (!(image[i] >= 0 && image[i] <= 2)) return fmt::format("pixel {} is {}", i, image[i]);
      sum += image[i];
    }
    // Rays that hit nothing see 0.1; many hit.
    return sum / (side * side) > 0.1 && sum / (side * side) < 1.0
               ? std::string()
               : fmt::format("the mean is {}", sum / (side * side));
  };
}

using Maker = void (*)(const CaseOptions&, Random&, Case*);
struct Named {
  CaseName name;
  Maker make;
};
const Named kCases[] = {
    {{"matmul", "product of two matrices by tiles of 16 x 16"}, make_matmul},
    {{"conv", "four 5 x 5 filters over three planes, as Cuda-convnet's filterActs"}, make_conv},
    {{"stencil", "two steps of a 5-point stencil, as HotSpot"}, make_stencil},
    {{"reduce", "sums of blocks"}, make_reduce},
    {{"bfs", "one level of a breadth-first search"}, make_bfs},
    {{"kmeans", "the nearest of five centres for each point"}, make_kmeans},
    {{"needle", "Needleman-Wunsch by diagonals of tiles"}, make_needle},
    {{"strings", "longest matches in a suffix automaton, as MUMmer"}, make_strings},
    {{"rays", "ray casting on spheres with reflections"}, make_rays},
    {{"get", "our store's GET look-up, a thread a request, keys of 16 bytes"}, make_get},
    {{"get-mixed", "the same with keys of 8 to 64 bytes"}, make_get_mixed},
};

}  // namespace

const std::vector<CaseName>& case_names() {
  static const std::vector<CaseName> names = [] {
    std::vector<CaseName> all;
    for (const Named& one : kCases) all.push_back(one.name);
    return all;
  }();
  return names;
}

bool make_case(const std::string& name, const CaseOptions& options, Case* out, std::string* why) {
  const auto found = std::find_if(std::begin(kCases), std::end(kCases),
                                  [&](const Named& one) { return name == one.name.name; });
  if (found == std::end(kCases)) {
    *why = "no kernel " + name;
    return false;
  }
  if (!(options.scale > 0 && options.scale <= kScaleMax)) {
    *why = fmt::format("a scale of {} is not over 0 and at most {}", options.scale, kScaleMax);
    return false;
  }
  Random random(options.seed);
  out->kernel = name.substr(0, name.find('-'));
  found->make(options, random, out);
  if (options.blocks_max != 0) {
    out->launch.grid_x = std::min(out->launch.grid_x, options.blocks_max);
    out->launch.grid_y = 1;
    out->check = [] { return std::string(); };
  }
  if (out->launch.block_x == 0) *why = "no memory for a store";
  return out->launch.block_x != 0;
}

}  // namespace warpcache::edge_sim
