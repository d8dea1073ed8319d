// SPDX-License-Identifier: Apache-2.0
// Compiled to PTX by `compile`.
#include "edge/kernels/kernels.cuh"
