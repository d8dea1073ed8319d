// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/program.h"

#include <linux/if_link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "nic_cache/libbpf.h"
#include "nic_cache/object.h"

namespace warpcache::nic_cache {

namespace {

std::string failed(const char* what, int error) {
  return std::string(what) + ": " + std::strerror(error < 0 ? -error : error);
}

}  // namespace

struct XdpProgram::Kernel {
  ~Kernel() {
    if (link >= 0) (void)close(link);
    for (ring_buffer* const one : {ring, write_ring}) {
      if (one != nullptr) bpf->ring_free(one);
    }
    for (const Mapping& mapping : mappings) (void)munmap(mapping.at, mapping.bytes);
    for (const int fd : {grace, grace_inner}) {
      if (fd >= 0) (void)close(fd);
    }
    if (object != nullptr) bpf->object_close(object);
  }

  struct Mapping {
    void* at;
    size_t bytes;
  };

  void* map(const char* name, size_t bytes) {
    const int fd = bpf->map_fd(bpf->object_find_map(object, name));
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return nullptr;
    mappings.push_back({at, bytes});
    return at;
  }

  std::string open(uint32_t memory_mb, uint32_t sources);
  std::string map_memory();
  std::string make_grace();

  const Libbpf* bpf = nullptr;
  bpf_object* object = nullptr;
  char verifier_log[16 * 1024] = {};
  int program = -1;  // owned by `object`
  int count = -1;    // likewise
  int link = -1;
  int grace = -1;
  int grace_inner = -1;
  ring_buffer* ring = nullptr;
  ring_buffer* write_ring = nullptr;
  std::vector<Mapping> mappings;
  CopyMemory memory;
  std::function<void(Bytes)> take;
  std::function<void(const nic_write&)> take_write;
};

std::string XdpProgram::Kernel::open(uint32_t memory_mb, uint32_t sources) {
  std::string failure;
  bpf = load_libbpf(&failure);
  if (bpf == nullptr) return failure;
  const Bytes bytes = program_object();
  object = bpf->object_open_mem(bytes.data, bytes.size, nullptr);
  if (object == nullptr) return failed("the program", errno);
  memory.block_count = memory_mb;
  memory.set_count = set_count_for(memory_mb);
  (void)bpf->map_set_max_entries(bpf->object_find_map(object, "nic_blocks"), memory.block_count);
  (void)bpf->map_set_max_entries(bpf->object_find_map(object, "nic_sets"), memory.set_count);
  (void)bpf->map_set_max_entries(bpf->object_find_map(object, "nic_sources"), sources);
  bpf_program* const main = bpf->object_find_program(object, "warpcache_nic");
  constexpr __u32 kStatistics = 4;  // BPF_LOG_STATS of the kernel
  (void)bpf->set_log_buffer(main, verifier_log, sizeof verifier_log);
  (void)bpf->set_log_level(main, kStatistics);
  const int loaded = bpf->object_load(object);
  if (loaded == -EPERM) {
    return "loading the program needs the capabilities CAP_BPF and CAP_NET_ADMIN";
  }
  if (loaded != 0) return failed("the kernel refuses the program", loaded);
  program = bpf->program_fd(main);
  count = bpf->map_fd(bpf->object_find_map(object, "nic_count"));
  return map_memory();
}

std::string XdpProgram::Kernel::map_memory() {
  memory.control = static_cast<nic_control*>(map(".data.nic_control", sizeof(nic_control)));
  memory.versions = static_cast<nic_versions*>(map(".data.nic_versions", sizeof(nic_versions)));
  memory.sets = static_cast<nic_set*>(map("nic_sets", sizeof(nic_set) * memory.set_count));
  memory.blocks =
      static_cast<uint8_t*>(map("nic_blocks", size_t{kNicBlockBytes} * memory.block_count));
  if (memory.control == nullptr || memory.versions == nullptr || memory.sets == nullptr ||
      memory.blocks == nullptr) {
    return failed("its memory cannot be mapped", errno);
  }
  const auto on_wanted = [](void* self, void* data, size_t size) {
    const auto* const wanted = static_cast<const nic_wanted*>(data);
    if (size >= sizeof *wanted && wanted->key_size <= kNicKeyMax) {
      static_cast<Kernel*>(self)->take({wanted->key, wanted->key_size});
    }
    return 0;
  };
  const int ring_fd = bpf->map_fd(bpf->object_find_map(object, "nic_wants"));
  ring = bpf->ring_new(ring_fd, on_wanted, this, nullptr);
  if (ring == nullptr) return failed("its ring of missed keys", errno);
  const auto on_write = [](void* self, void* data, size_t size) {
    const auto* const write = static_cast<const nic_write*>(data);
    if (size >= sizeof *write && write->key_size <= kNicKeyMax &&
        write->value_size <= sizeof write->value) {
      static_cast<Kernel*>(self)->take_write(*write);
    }
    return 0;
  };
  const int writes_fd = bpf->map_fd(bpf->object_find_map(object, "nic_writes"));
  write_ring = bpf->ring_new(writes_fd, on_write, this, nullptr);
  if (write_ring == nullptr) return failed("its ring of writes", errno);
  return make_grace();
}

// The kernel answers a change of a map of maps when no program runs any more that has begun before.
std::string XdpProgram::Kernel::make_grace() {
  grace_inner = bpf->map_create(BPF_MAP_TYPE_ARRAY, "nic_grace_inner", 4, 4, 1, nullptr);
  bpf_map_create_opts options = {};
  options.sz = sizeof options;
  options.inner_map_fd = static_cast<uint32_t>(grace_inner);
  if (grace_inner >= 0) {
    grace = bpf->map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "nic_grace", 4, 4, 1, &options);
  }
  return grace >= 0 ? "" : failed("a map of maps", errno);
}

XdpProgram::XdpProgram() : kernel_(std::make_unique<Kernel>()) {}
XdpProgram::~XdpProgram() = default;

std::string XdpProgram::load(uint32_t memory_mb, uint32_t sources) {
  return kernel_->open(memory_mb, sources);
}

CopyMemory XdpProgram::memory() const { return kernel_->memory; }

std::string XdpProgram::attach(unsigned interface, XdpMode mode, bool* busy) {
  *busy = false;
  bpf_link_create_opts options = {};
  options.sz = sizeof options;
  if (mode == XdpMode::kNative) options.flags = XDP_FLAGS_DRV_MODE;
  if (mode == XdpMode::kGeneric) options.flags = XDP_FLAGS_SKB_MODE;
  const int link =
      kernel_->bpf->link_create(kernel_->program, static_cast<int>(interface), BPF_XDP, &options);
  if (link >= 0) {
    kernel_->link = link;
    return "";
  }
  *busy = link == -EBUSY || link == -EEXIST;
  if (*busy) return "another XDP program is on the interface";
  if (link == -EPERM) return "attaching the program needs the capability CAP_NET_ADMIN";
  if (link == -EOPNOTSUPP) return "the interface's driver does not run XDP programs";
  return failed("attaching the program", link);
}

void XdpProgram::detach() {
  if (kernel_->link >= 0) (void)close(kernel_->link);
  kernel_->link = -1;
}

bool XdpProgram::attached() const {
  if (kernel_->link < 0) return false;
  bpf_link_info info = {};
  uint32_t size = sizeof info;
  return kernel_->bpf->get_info(kernel_->link, &info, &size) == 0 && info.xdp.ifindex != 0;
}

bool XdpProgram::wait_for_runs() {
  const uint32_t zero = 0;
  return kernel_->bpf->map_update(kernel_->grace, &zero, &kernel_->grace_inner, 0) == 0;
}

void XdpProgram::take_wanted(const std::function<void(Bytes)>& take) {
  kernel_->take = take;
  (void)kernel_->bpf->ring_consume(kernel_->ring);
}

void XdpProgram::take_writes(const std::function<void(const nic_write&)>& take) {
  kernel_->take_write = take;
  (void)kernel_->bpf->ring_consume(kernel_->write_ring);
}

nic_counters XdpProgram::counters(uint32_t queue) const {
  const int cpus = kernel_->bpf->num_possible_cpus();
  std::vector<nic_counters> each(cpus > 0 ? static_cast<size_t>(cpus) : 0);
  nic_counters sum = {};
  if (each.empty() || kernel_->bpf->map_lookup(kernel_->count, &queue, each.data()) != 0)
    return sum;
  for (const nic_counters& one : each) {
    const auto* const from = reinterpret_cast<const uint64_t*>(&one);
    auto* const to = reinterpret_cast<uint64_t*>(&sum);
    for (size_t i = 0; i < sizeof sum / sizeof *to; ++i) to[i] += from[i];
  }
  return sum;
}

ProgramSize XdpProgram::size() const {
  bpf_prog_info info = {};
  uint32_t size = sizeof info;
  if (kernel_->bpf->get_info(kernel_->program, &info, &size) != 0) return {};
  ProgramSize found;
  found.instructions = info.xlated_prog_len / 8;
  found.verified = info.verified_insns;
  // "stack depth 24+128+0"
  constexpr char kStack[] = "stack depth ";
  const char* at = std::strstr(kernel_->verifier_log, kStack);
  if (at == nullptr) return found;
  at += sizeof kStack - 1;
  for (char* end = nullptr;; at = end + 1) {
    found.stack.push_back(static_cast<uint32_t>(std::strtoul(at, &end, 10)));
    if (*end != '+') return found;
  }
}

std::string XdpProgram::test_run(Bytes frame, uint32_t repeat, TestRun* run) const {
  run->frame.resize(4096);
  bpf_test_run_opts options = {};
  options.sz = sizeof options;
  options.data_in = frame.data;
  options.data_size_in = static_cast<uint32_t>(frame.size);
  options.data_out = run->frame.data();
  options.data_size_out = static_cast<uint32_t>(run->frame.size());
  options.repeat = static_cast<int>(repeat);
  const int failure = kernel_->bpf->test_run(kernel_->program, &options);
  if (failure != 0) return failed("a run of the program", failure);
  run->action = options.retval;
  run->nanoseconds = options.duration;
  run->frame.resize(options.data_size_out);
  return "";
}

}  // namespace warpcache::nic_cache
