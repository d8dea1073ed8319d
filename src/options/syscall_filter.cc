// SPDX-License-Identifier: Apache-2.0
#include "options/syscall_filter.h"

#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace warpcache {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// Numbers from here on are another set of calls of the same processor (x32).
constexpr uint32_t kNumberEnd = 0x40000000;

// Allowed with any arguments; the most frequent ones first.
constexpr uint32_t kAllowed[] = {
    // Requests.
    SYS_recvfrom,
    SYS_sendto,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_epoll_pwait,
    SYS_futex,
    SYS_ppoll,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
    SYS_poll,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
    // Connections.
    SYS_accept,
    SYS_accept4,
    SYS_close,
    SYS_shutdown,
    SYS_epoll_ctl,
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_fcntl,
    // Memory.
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_msync,
    SYS_membarrier,
    // Threads, signals and time.
    SYS_set_robust_list,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_getcpu,
#ifdef SYS_rseq
    SYS_rseq,
#endif
    // Facts about the process and the machine.
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_times,
    SYS_uname,
    SYS_sysinfo,
    SYS_prlimit64,
    SYS_getcwd,
    // Files: passwords and certificates that are read again, the pid file, the items of -e.
    SYS_openat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_lseek,
    SYS_pread64,
    SYS_pwrite64,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_flock,
    SYS_fchmod,
    SYS_dup3,
#ifdef SYS_open
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_readlink,
    SYS_access,
    SYS_unlink,
    SYS_rename,
    SYS_dup2,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
};

// DPDK's drivers: memif finds its other side again and shares new memory with it; AF_XDP takes its
// program from the interface at the end; a ring removes its folder.
constexpr uint32_t kAllowedForFrames[] = {
    SYS_connect,      SYS_bind,  SYS_memfd_create,
    SYS_mkdirat,  // libxdp's lock
    SYS_statfs,
#ifdef SYS_epoll_create
    SYS_epoll_create, SYS_mkdir, SYS_rmdir,
#endif
};
constexpr uint32_t kDomainsForFrames[] = {AF_UNIX, AF_NETLINK};
constexpr uint32_t kRequestsForFrames[] = {SIOCGIFFLAGS};  // of ioctl(): whether a link is up
constexpr uint32_t kBpfForFrames[] = {BPF_MAP_LOOKUP_ELEM,   BPF_MAP_UPDATE_ELEM,
                                      BPF_MAP_DELETE_ELEM,   BPF_OBJ_GET_INFO_BY_FD,
                                      BPF_PROG_GET_FD_BY_ID, BPF_LINK_DETACH};

// UCX reaches each new client by sockets and memory of its own.
constexpr uint32_t kAllowedForUcx[] = {SYS_connect,         SYS_bind,
                                       SYS_listen,          SYS_timerfd_create,
                                       SYS_timerfd_settime, SYS_process_vm_readv};
constexpr uint32_t kDomainsForUcx[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
constexpr uint32_t kRequestsForUcx[] = {SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFFLAGS, SIOCETHTOOL};

// CUDA's driver. Kernels are started through mapped memory, without a system call. What is called
// are the driver's device files, which are opened and mapped as any other, when a kernel is loaded
// at its first launch or needs more memory, and at the end; pipes and memory that its threads
// share.
constexpr uint32_t kAllowedForCuda[] = {SYS_memfd_create, SYS_pipe2};
// Of ioctl(): requests to /dev/nvidiactl and /dev/nvidia0 and so on have this type in their second
// byte; those to /dev/nvidia-uvm are small numbers, and these two.
constexpr uint32_t kTypeMask = 0xff00;
constexpr uint32_t kTypeOfNvidia = 'F' << 8;
constexpr uint32_t kUvmRequestEnd = 0x100;
constexpr uint32_t kUvmRequests[] = {0x30000001, 0x30000002};  // begin and end

// Calls with which something else begins to run.
constexpr uint32_t kDeadly[] = {
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_writev,
#ifdef SYS_fork
    SYS_fork,   SYS_vfork,
#endif
};

class Program {
 public:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }
  void load_low_word(uint32_t argument) {  // both architectures are little-endian
    load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
  }
  void give(uint32_t verdict) { add(BPF_RET | BPF_K, verdict, 0, 0); }
  void give_if(uint32_t value, uint32_t verdict) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    give(verdict);
  }
  template <size_t kCount>
  void give_if_one_of(const uint32_t (&values)[kCount], uint32_t verdict) {
    for (const uint32_t value : values) give_if(value, verdict);
  }
  void give_if_any_bit(uint32_t bits, uint32_t verdict) {
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    give(verdict);
  }
  void give_if_below(uint32_t value, uint32_t verdict) {
    add(BPF_JMP | BPF_JGE | BPF_K, value, 1, 0);
    give(verdict);
  }
  void mask(uint32_t bits) { add(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0); }
  void give_if_not_below(uint32_t value, uint32_t verdict) {
    add(BPF_JMP | BPF_JGE | BPF_K, value, 0, 1);
    give(verdict);
  }
  // The following `count` instructions are for call `number` only.
  void only_for(uint32_t number, uint8_t count) {
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, count);
  }
  sock_fprog get() { return {static_cast<uint16_t>(code_.size()), code_.data()}; }

 private:
  void add(uint32_t code, uint32_t operand, uint8_t if_true, uint8_t if_false) {
    code_.push_back({static_cast<uint16_t>(code), if_true, if_false, operand});
  }
  std::vector<sock_filter> code_;
};

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t kNoPermission = SECCOMP_RET_ERRNO | EPERM;
// The C library then uses clone(), whose flags can be seen here.
constexpr uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | ENOSYS;

// `number` is allowed with these values of an argument only.
template <size_t kCount>
void allow_with(Program& program, uint32_t number, uint32_t argument,
                const uint32_t (&values)[kCount]) {
  program.only_for(number, static_cast<uint8_t>(2 * kCount + 2));
  program.load_low_word(argument);
  program.give_if_one_of(values, kAllow);
  program.give(kNoPermission);
}

// Requests to the files of CUDA's driver; other calls of ioctl() are decided on by what follows.
void allow_cuda_requests(Program& program) {
  constexpr uint8_t kInstructions = 11;
  program.only_for(SYS_ioctl, kInstructions);
  program.load_low_word(1);
  program.give_if_below(kUvmRequestEnd, kAllow);
  program.give_if_one_of(kUvmRequests, kAllow);
  program.mask(kTypeMask);
  program.give_if(kTypeOfNvidia, kAllow);
  program.load(offsetof(seccomp_data, nr));
}

Program make_program(const FilterNeeds& needs) {
  Program program;
  program.load(offsetof(seccomp_data, arch));
  program.only_for(kArchitecture, 1);
  program.load(offsetof(seccomp_data, nr));
  program.give_if_not_below(kNumberEnd, kKill);  // or the number of another architecture
  program.give_if_one_of(kAllowed, kAllow);
  if (needs.cuda) {
    program.give_if_one_of(kAllowedForCuda, kAllow);
    allow_cuda_requests(program);
  }
  if (needs.ucx) {
    program.give_if_one_of(kAllowedForUcx, kAllow);
    allow_with(program, SYS_socket, 0, kDomainsForUcx);
    allow_with(program, SYS_ioctl, 1, kRequestsForUcx);
  }
  if (needs.frames) {
    program.give_if_one_of(kAllowedForFrames, kAllow);
    allow_with(program, SYS_socket, 0, kDomainsForFrames);
    allow_with(program, SYS_ioctl, 1, kRequestsForFrames);
    allow_with(program, SYS_bpf, 0, kBpfForFrames);
  }
  program.give_if_one_of(kDeadly, kKill);
  program.give_if(SYS_clone3, kNoSuchCall);
  program.only_for(SYS_clone, 4);
  program.load_low_word(0);
  program.give_if_any_bit(CLONE_THREAD, kAllow);
  program.give(kKill);
  for (const uint32_t number : {uint32_t{SYS_mmap}, uint32_t{SYS_mprotect}}) {
    program.only_for(number, 4);
    program.load_low_word(2);
    program.give_if_any_bit(PROT_EXEC, kNoPermission);
    program.give(kAllow);
  }
  program.only_for(SYS_prctl, 4);
  program.load_low_word(0);
  program.give_if(PR_SET_NAME, kAllow);
  program.give(kNoPermission);
  program.give(kNoPermission);  // every other call
  return program;
}

}  // namespace

std::string install_syscall_filter(const FilterNeeds& needs) {
  if (kArchitecture == 0) {
    return "-o drop_privileges: the system calls of this processor are not listed.";
  }
  const std::string what = "-o drop_privileges: the kernel takes no system-call filter: ";
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return what + std::strerror(errno) + ".";
  Program program = make_program(needs);
  const sock_fprog code = program.get();
  const long result =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &code);
  if (result == 0) return "";
  return what + (result < 0 ? std::strerror(errno) : "a thread has another filter") + ".";
}

}  // namespace warpcache
