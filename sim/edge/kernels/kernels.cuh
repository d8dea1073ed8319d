// SPDX-License-Identifier: Apache-2.0
// The kernels that edge-sim records and that edge-sim-gpu runs: dense, Rodinia-like, string
// matching, ray casting, our GET look-up, and the interrupt service routine.
// docs/simulators/edge-sim.md.
#pragma once

#include <cstdint>

#include "edge/kernels/get_request.h"
#include "edge/kernels/sizes.h"

namespace warpcache::edge_sim {

#define EDGE_BODY __device__ __forceinline__ void
#if !defined(EDGE_KERNEL)
#define EDGE_KERNEL(NAME, PARAMETERS, ARGUMENTS) \
  extern "C" __global__ void NAME PARAMETERS { NAME##_body ARGUMENTS; }
#endif

// c = a * b, square matrices of n x n; n is a multiple of kTile.
EDGE_BODY matmul_body(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k += kTile) {
    a_tile[y][x] = a[row * n + k + x];
    b_tile[y][x] = b[(k + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum = fmaf(a_tile[y][i], b_tile[i][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// kFilters filters of 5 x 5 over `channels` planes of side x side, as Cuda-convnet's filterActs: a
// block loads its part of each plane and its filters to shared memory, waits, and multiplies.
EDGE_BODY conv_body(const float* image, const float* filters, float* out, int side, int channels) {
  constexpr int kSpan = kTile + kFilterSide - 1;
  constexpr int kWeights = kFilterSide * kFilterSide;
  __shared__ float patch[kSpan * kSpan];
  __shared__ float weights[kFilters * kWeights];
  const int x = threadIdx.x, y = threadIdx.y, thread = y * kTile + x;
  const int out_side = side - kFilterSide + 1;
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  float sums[kFilters] = {};
#pragma unroll 1
  for (int channel = 0; channel < channels; ++channel) {
    const float* plane = image + channel * side * side;
#pragma unroll 1
    for (int i = thread; i < kSpan * kSpan; i += kTile * kTile) {
      patch[i] = plane[(top + i / kSpan) * side + left + i % kSpan];
    }
    if (thread < kFilters * kWeights) {
      weights[thread] = filters[channel * kFilters * kWeights + thread];
    }
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j < kFilterSide; ++j) {
#pragma unroll
      for (int i = 0; i < kFilterSide; ++i) {
        const float pixel = patch[(y + j) * kSpan + x + i];
#pragma unroll
        for (int f = 0; f < kFilters; ++f) {
          sums[f] = fmaf(pixel, weights[f * kWeights + j * kFilterSide + i], sums[f]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int f = 0; f < kFilters; ++f) {
    out[(f * out_side + top + y) * out_side + left + x] = sums[f];
  }
}

// Two steps of a 5-point stencil inside a block, as HotSpot's pyramid. `side` is a multiple of
// kTile - 4; `in` has a border of 2.
EDGE_BODY stencil_body(const float* in, const float* power, float* out, int side) {
  __shared__ float tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int inner = kTile - 4;
  const int pitch = side + 4;
  const int at = (blockIdx.y * inner + y) * pitch + blockIdx.x * inner + x;
  float value = in[at];
  const float source = power[at];
#pragma unroll 1
  for (int step = 1; step <= 2; ++step) {
    tile[y][x] = value;
    __syncthreads();
    if (x >= step && x < kTile - step && y >= step && y < kTile - step) {
      const float around = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
      value = fmaf(0.2f, around - 4.0f * value, value) + source;
    }
    __syncthreads();
  }
  if (x >= 2 && x < kTile - 2 && y >= 2 && y < kTile - 2) out[at] = value;
}

// sums[block] = the sum of the block's kReduceThreads * kReduceItems elements.
EDGE_BODY reduce_body(const float* in, float* sums) {
  __shared__ float part[kReduceThreads];
  const int thread = threadIdx.x;
  const float* mine = in + blockIdx.x * kReduceThreads * kReduceItems + thread;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kReduceItems; ++i) sum += mine[i * kReduceThreads];
  part[thread] = sum;
  __syncthreads();
#pragma unroll 1
  for (int half = kReduceThreads / 2; half > 0; half /= 2) {
    if (thread < half) part[thread] += part[thread + half];
    __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = part[0];
}

// One level of a breadth-first search, a thread a node: neighbours of the frontier that have no
// cost get cost + 1.
EDGE_BODY bfs_body(const int* first_edge, const int* edges, const int* frontier, const int* visited,
                   int* cost, int* updated, int nodes) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || frontier[node] == 0) return;
  const int next_cost = cost[node] + 1;
  const int end = first_edge[node + 1];
#pragma unroll 1
  for (int i = first_edge[node]; i < end; ++i) {
    const int neighbour = edges[i];
    if (visited[neighbour] == 0) {
      cost[neighbour] = next_cost;
      updated[neighbour] = 1;
    }
  }
}

// The nearest of `clusters` centres for each point; points by feature, as Rodinia's k-means.
EDGE_BODY kmeans_body(const float* points, const float* centres, int* nearest, int count,
                      int clusters, int features) {
  const int point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point >= count) return;
  float best = 3.4e38f;
  int found = 0;
#pragma unroll 1
  for (int c = 0; c < clusters; ++c) {
    float distance = 0;
#pragma unroll 1
    for (int f = 0; f < features; ++f) {
      const float d = points[f * count + point] - centres[c * features + f];
      distance = fmaf(d, d, distance);
    }
    if (distance < best) {
      best = distance;
      found = c;
    }
  }
  nearest[point] = found;
}

// Needleman-Wunsch: a block of one warp fills a tile of 32 x 32 scores by diagonals. `borders`: per
// tile the row above (33 values) and the column to the left (32).
EDGE_BODY needle_body(const int* reference, const int* borders, int* out, int penalty) {
  constexpr int kSide = kNeedleSide;
  __shared__ int score[(kSide + 1) * (kSide + 1)];
  __shared__ int similar[kSide * kSide];
  const int x = threadIdx.x;
  const int tile = blockIdx.x;
  const int* border = borders + tile * (2 * kSide + 1);
  score[x + 1] = border[x + 1];
  score[(x + 1) * (kSide + 1)] = border[kSide + 1 + x];
  if (x == 0) score[0] = border[0];
#pragma unroll 4
  for (int y = 0; y < kSide; ++y) {
    similar[y * kSide + x] = reference[(tile * kSide + y) * kSide + x];
  }
  __syncthreads();
#pragma unroll 1
  for (int diagonal = 0; diagonal < 2 * kSide - 1; ++diagonal) {
    const int y = diagonal - x;
    if (y >= 0 && y < kSide) {
      const int at = (y + 1) * (kSide + 1) + x + 1;
      const int corner = score[at - kSide - 2] + similar[y * kSide + x];
      const int left = score[at - 1] - penalty;
      const int up = score[at - kSide - 1] - penalty;
      score[at] = max(corner, max(left, up));
    }
    __syncthreads();
  }
#pragma unroll 4
  for (int y = 0; y < kSide; ++y) {
    out[(tile * kSide + y) * kSide + x] = score[(y + 1) * (kSide + 1) + x + 1];
  }
}

// String matching as MUMmer's: a thread a query, the longest match with the reference that ends at
// any of the query's letters.
EDGE_BODY strings_body(const MatchState* states, const unsigned char* queries, const int* first,
                       int* longest, int count) {
  const int query = blockIdx.x * blockDim.x + threadIdx.x;
  if (query >= count) return;
  int state = 0, length = 0, best = 0;
  const int end = first[query + 1];
#pragma unroll 1
  for (int i = first[query]; i < end; ++i) {
    const int letter = queries[i];
#pragma unroll 1
    while (state != 0 && states[state].next[letter] < 0) {
      state = states[state].link;
      length = states[state].length;
    }
    const int next = states[state].next[letter];
    if (next >= 0) {
      state = next;
      ++length;
    }
    best = max(best, length);
  }
  longest[query] = best;
}

// Casts a ray a pixel on spheres, up to `bounces` reflections; writes the brightness.
EDGE_BODY rays_body(const Sphere* spheres, float* image, int side, int count, int bounces) {
  const int px = blockIdx.x * 8 + threadIdx.x % 8, py = blockIdx.y * 4 + threadIdx.x / 8;
  float ox = 0, oy = 0, oz = -4;
  float dx = (px + 0.5f) / side * 2 - 1, dy = (py + 0.5f) / side * 2 - 1, dz = 1.5f;
  float light = 0, weight = 1;
#pragma unroll 1
  for (int bounce = 0; bounce <= bounces; ++bounce) {
    const float dd = dx * dx + dy * dy + dz * dz;
    float nearest = 1e30f;
    int hit = -1;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const Sphere s = spheres[i];
      const float cx = s.x - ox, cy = s.y - oy, cz = s.z - oz;
      const float along = cx * dx + cy * dy + cz * dz;
      if (along <= 0) continue;
      const float root = along * along - dd * (cx * cx + cy * cy + cz * cz - s.radius_squared);
      if (root <= 0) continue;
      const float t = __fdividef(along - __fsqrt_rn(root), dd);
      if (t > 1e-3f && t < nearest) {
        nearest = t;
        hit = i;
      }
    }
    if (hit < 0) {
      light += weight * 0.1f;
      break;
    }
    const Sphere s = spheres[hit];
    ox += nearest * dx, oy += nearest * dy, oz += nearest * dz;
    const float nx = ox - s.x, ny = oy - s.y, nz = oz - s.z;
    const float across = __fdividef(2 * (dx * nx + dy * ny + dz * nz), s.radius_squared);
    light += weight * fmaxf(0.0f, ny);
    dx -= across * nx, dy -= across * ny, dz -= across * nz;
    weight *= 0.5f;
  }
  image[py * side + px] = light;
}

// GET requests: the store's own hash, look-up and comparison of the whole key, a thread a request,
// and a copy of the value to the reply.
EDGE_BODY get_body(GetBatch batch) {
  const uint32_t request = blockIdx.x * blockDim.x + threadIdx.x;
  if (request < batch.count) serve_get(batch, request);
}

// The interrupt service routine: saves the victim's registers, asks the interrupt controller for
// the cause, hands the event's parameters to the event kernel table, and restores. One lane works.
EDGE_BODY isr_body(volatile uint32_t* save, volatile uint32_t* controller, volatile uint32_t* table,
                   int delay) {
  if (threadIdx.x != 0) return;
  if (save != nullptr) {
#pragma unroll
    for (int i = 0; i < kIsrRegisters; ++i) save[i] = i;
  }
  const uint32_t cause = controller[0];
  const uint32_t event = controller[1];
#pragma unroll 1
  for (int i = 0; i < delay; ++i) asm volatile("");
  if (cause == 1) table[event] = event + 1;
  if (save != nullptr) {
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < kIsrRegisters; ++i) sum += save[i];
    table[8] = sum;
  }
}

// --- The kernels

EDGE_KERNEL(matmul, (const float* a, const float* b, float* c, int n), (a, b, c, n))
EDGE_KERNEL(conv, (const float* image, const float* filters, float* out, int side, int channels),
            (image, filters, out, side, channels))
EDGE_KERNEL(stencil, (const float* in, const float* power, float* out, int side),
            (in, power, out, side))
EDGE_KERNEL(reduce, (const float* in, float* sums), (in, sums))
EDGE_KERNEL(bfs,
            (const int* first_edge, const int* edges, const int* frontier, const int* visited,
             int* cost, int* updated, int nodes),
            (first_edge, edges, frontier, visited, cost, updated, nodes))
EDGE_KERNEL(kmeans,
            (const float* points, const float* centres, int* nearest, int count, int clusters,
             int features),
            (points, centres, nearest, count, clusters, features))
EDGE_KERNEL(needle, (const int* reference, const int* borders, int* out, int penalty),
            (reference, borders, out, penalty))
EDGE_KERNEL(strings,
            (const MatchState* states, const unsigned char* queries, const int* first, int* longest,
             int count),
            (states, queries, first, longest, count))
EDGE_KERNEL(rays, (const Sphere* spheres, float* image, int side, int count, int bounces),
            (spheres, image, side, count, bounces))
EDGE_KERNEL(get, (GetBatch batch), (batch))
EDGE_KERNEL(isr,
            (volatile uint32_t * save, volatile uint32_t* controller, volatile uint32_t* table,
             int delay),
            (save, controller, table, delay))

}  // namespace warpcache::edge_sim
