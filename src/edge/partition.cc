// SPDX-License-Identifier: Apache-2.0
#include "edge/partition.h"

#include <cuda.h>

namespace warpcache::edge {

namespace {

constexpr unsigned kVersion = 12050;  // with all of these functions

// The driver's function of a name; null: it has none.
template <typename Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<Function*>(found);
}

struct Driver {
  decltype(cuDeviceGet)* device_get = driver_function<decltype(cuDeviceGet)>("cuDeviceGet");
  decltype(cuDeviceGetDevResource)* resource =
      driver_function<decltype(cuDeviceGetDevResource)>("cuDeviceGetDevResource");
  decltype(cuDevSmResourceSplitByCount)* split =
      driver_function<decltype(cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount");
  decltype(cuDevResourceGenerateDesc)* describe =
      driver_function<decltype(cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc");
  decltype(cuGreenCtxCreate)* create =
      driver_function<decltype(cuGreenCtxCreate)>("cuGreenCtxCreate");
  decltype(cuGreenCtxDestroy)* destroy =
      driver_function<decltype(cuGreenCtxDestroy)>("cuGreenCtxDestroy");
  decltype(cuGreenCtxStreamCreate)* stream =
      driver_function<decltype(cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate");

  bool whole() const {
    return device_get != nullptr && resource != nullptr && split != nullptr &&
           describe != nullptr && create != nullptr && destroy != nullptr && stream != nullptr;
  }
};

class GreenPartition final : public Partition {
 public:
  ~GreenPartition() override {
    for (Half& half : halves_) {
      if (half.stream != nullptr) (void)cudaStreamDestroy(half.stream);
      if (half.context != nullptr) (void)driver_.destroy(half.context);
    }
  }

  std::string open(uint32_t wanted) {
    if (!driver_.whole()) return "the driver has no green contexts";
    int number = 0;
    CUdevice device = 0;
    CUdevResource all = {};
    CUdevResource own = {};
    CUdevResource rest = {};
    unsigned groups = 1;
    if (cudaGetDevice(&number) != cudaSuccess ||
        driver_.device_get(&device, number) != CUDA_SUCCESS ||
        driver_.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) {
      return "the driver does not tell its multiprocessors";
    }
    if (driver_.split(&own, &groups, &all, &rest, 0, wanted) != CUDA_SUCCESS || groups != 1) {
      return "the driver does not divide its multiprocessors";
    }
    multiprocessors_ = own.sm.smCount;
    std::string failure = fill(halves_[0], own, device, -5);
    if (failure.empty()) failure = fill(halves_[1], rest, device, 0);
    return failure;
  }

  cudaStream_t own() const override { return halves_[0].stream; }
  cudaStream_t rest() const override { return halves_[1].stream; }
  uint32_t multiprocessors() const override { return multiprocessors_; }

 private:
  struct Half {
    CUgreenCtx context = nullptr;
    cudaStream_t stream = nullptr;
  };

  // The driver limits a priority that is out of its range.
  std::string fill(Half& half, CUdevResource& resource, CUdevice device, int priority) const {
    CUdevResourceDesc description = nullptr;
    CUstream stream = nullptr;
    if (driver_.describe(&description, &resource, 1) != CUDA_SUCCESS ||
        driver_.create(&half.context, description, device, CU_GREEN_CTX_DEFAULT_STREAM) !=
            CUDA_SUCCESS ||
        driver_.stream(&stream, half.context, CU_STREAM_NON_BLOCKING, priority) != CUDA_SUCCESS) {
      return "the driver makes no green context";
    }
    half.stream = stream;
    return "";
  }

  Driver driver_;
  Half halves_[2];
  uint32_t multiprocessors_ = 0;
};

}  // namespace

std::string Partition::create(uint32_t multiprocessors, std::unique_ptr<Partition>* partition) {
  auto made = std::make_unique<GreenPartition>();
  std::string failure = made->open(multiprocessors);
  if (failure.empty()) *partition = std::move(made);
  return failure;
}

}  // namespace warpcache::edge
