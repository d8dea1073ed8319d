// SPDX-License-Identifier: Apache-2.0
#include "options/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "options/banner.h"
#include "options/logging.h"

namespace warpcache {
namespace {

using ::testing::HasSubstr;

// Runs `body` in a child process, since its effect cannot be undone. Returns the exit status, which
// is the result of `body`.
int status_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  EXPECT_GT(child, 0);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string file_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() {
    std::string name =
        testing::TempDir() + "warpcache_process_" + std::string(6, 'X');  // for mkdtemp
    folder_ = mkdtemp(name.data());
  }
  ~ProcessTest() override { std::filesystem::remove_all(folder_); }

  long files() const { return std::distance(std::filesystem::directory_iterator(folder_), {}); }

  std::string folder_;
};

TEST_F(ProcessTest, DescriptorLimitGrowsToTheHardLimit) {
  EXPECT_EQ(status_of_child([] {
              const rlimit low{64, 1024};
              if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 10;
              if (!raise_descriptor_limit(500).empty()) return 11;
              rlimit now{};
              if (getrlimit(RLIMIT_NOFILE, &now) != 0) return 12;
              return now.rlim_cur == 500 + kDescriptorsBesideConnections ? 0 : 13;
            }),
            0);
}

TEST_F(ProcessTest, DescriptorLimitAboveTheHardLimitNeedsRoot) {
  EXPECT_EQ(status_of_child([] {
              const rlimit low{64, 64};
              if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 10;
              if (running_as_root() && !change_user("nobody").empty()) return 11;
              const std::string failure = raise_descriptor_limit(1000);
              if (failure.find("-c 1000 needs 1256 open files, but the limit is 64") != 0)
                return 12;
              return failure.find("start as root, or give a smaller -c.") != failure.npos ? 0 : 13;
            }),
            0);
}

TEST_F(ProcessTest, DescriptorLimitAboveTheSystemsIsNobodys) {
  EXPECT_EQ(status_of_child([] {
              const rlimit low{500, 500};
              if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 10;
              const std::string failure = raise_descriptor_limit(4'000'000'000u);
              if (failure.find("(sysctl fs.nr_open)") == failure.npos) return 11;
              if (failure.find("as root") != failure.npos) return 12;
              return failure.find("or give a smaller -c (at most 244).") != failure.npos ? 0 : 13;
            }),
            0);
}

TEST_F(ProcessTest, DescriptorLimitNeverShrinks) {
  EXPECT_EQ(status_of_child([] {
              const rlimit enough{900, 1024};
              if (setrlimit(RLIMIT_NOFILE, &enough) != 0) return 10;
              if (!raise_descriptor_limit(1).empty()) return 11;
              rlimit now{};
              if (getrlimit(RLIMIT_NOFILE, &now) != 0) return 12;
              return now.rlim_cur == 900 ? 0 : 13;
            }),
            0);
}

TEST_F(ProcessTest, CoreDumps) {
  EXPECT_EQ(status_of_child([] {
              rlimit limit{};
              if (getrlimit(RLIMIT_CORE, &limit) != 0) return 10;
              const bool possible = limit.rlim_max != 0 || running_as_root();
              limit.rlim_cur = 0;
              if (setrlimit(RLIMIT_CORE, &limit) != 0) return 11;
              if (enable_core_dumps().empty() != possible) return 12;
              if (getrlimit(RLIMIT_CORE, &limit) != 0) return 13;
              return (limit.rlim_cur != 0) == possible ? 0 : 14;
            }),
            0);
  EXPECT_EQ(status_of_child([] {
              const rlimit none{0, 0};
              if (setrlimit(RLIMIT_CORE, &none) != 0) return 10;
              if (running_as_root() && !change_user("nobody").empty()) return 11;
              return enable_core_dumps().find("-r: ") == 0 ? 0 : 12;
            }),
            0);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // sanitizers make mlockall() do nothing
TEST_F(ProcessTest, LockedMemoryIsSeenByTheKernelOrRefused) {
  EXPECT_EQ(status_of_child([] {
              const std::string failure = lock_memory();
              if (!failure.empty())
                return failure.find("-k: memory cannot be locked: ") == 0 ? 0 : 10;
              const std::string status = file_text("/proc/self/status");
              const size_t line = status.find("VmLck:");
              if (line == std::string::npos) return 11;
              return std::strtol(status.c_str() + line + 6, nullptr, 10) > 0 ? 0 : 12;
            }),
            0);
}
#endif

TEST_F(ProcessTest, ChangeUser) {
  if (!running_as_root()) {
    EXPECT_EQ(change_user("no-such-user"), "");  // as memcached: -u counts for root only
    return;
  }
  EXPECT_EQ(change_user("no-such-user"), "-u: there is no user \"no-such-user\".");
  EXPECT_EQ(status_of_child([] {
              const passwd* const nobody = getpwnam("nobody");
              if (nobody == nullptr) return 10;
              const uid_t uid = nobody->pw_uid;
              const gid_t gid = nobody->pw_gid;
              if (!change_user("nobody").empty()) return 11;
              if (getuid() != uid || geteuid() != uid || getgid() != gid) return 12;
              return setuid(0) != 0 ? 0 : 13;
            }),
            0);
}

// The supplementary groups of root are dropped too: they would give an attacker access to files.
TEST_F(ProcessTest, ChangeUserLeavesTheGroupsOfRoot) {
  if (!running_as_root()) GTEST_SKIP() << "only root can become another user";
  EXPECT_EQ(status_of_child([] {
              constexpr gid_t kOfRoot = 54321;
              const gid_t before[] = {0, kOfRoot};
              if (setgroups(2, before) != 0) return 10;
              if (!change_user("nobody").empty()) return 11;
              const passwd* const nobody = getpwnam("nobody");
              if (nobody == nullptr) return 12;
              gid_t after[256];
              const int count = getgroups(256, after);
              if (count < 1) return 13;  // at least the group of nobody
              for (int i = 0; i < count; ++i) {
                if (after[i] == kOfRoot) return 14;
                if (after[i] == 0 && nobody->pw_gid != 0) return 15;
              }
              return 0;
            }),
            0);
}

// If the kernel keeps root's capabilities for the new user, the process could become root again.
TEST_F(ProcessTest, ChangeUserThatCanBeUndoneIsRefused) {
  constexpr int kCannotBeTested = 77;
  const int status = status_of_child([] {
    if (!running_as_root() || prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) != 0)
      return kCannotBeTested;
    return change_user("nobody") == "-u: user \"nobody\" could become root again." ? 0 : 10;
  });
  if (status == kCannotBeTested) GTEST_SKIP() << "needs root and CAP_SETPCAP";
  EXPECT_EQ(status, 0);
}

TEST_F(ProcessTest, PidFileLivesAsLongAsItsOwner) {
  const std::string path = folder_ + "/pid";
  {
    PidFile file;
    ASSERT_EQ(file.write(path), "");
    EXPECT_EQ(file_text(path), std::to_string(getpid()) + "\n");
    EXPECT_EQ(files(), 1);
    EXPECT_EQ(PidFile::running_process(path), 0);  // this process itself is no conflict
    struct stat found {};
    ASSERT_EQ(stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777u, 0644u);  // everybody may read it
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProcessTest, PidFileOfAnotherStays) {
  const std::string path = folder_ + "/pid";
  {
    PidFile file;
    ASSERT_EQ(file.write(path), "");
    std::ofstream(path) << getppid() << "\n";
    EXPECT_EQ(PidFile::running_process(path), getppid());
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  std::ofstream(path) << "rubbish\n";
  EXPECT_EQ(PidFile::running_process(path), 0);
  EXPECT_EQ(PidFile::running_process(folder_ + "/none"), 0);
}

// A process that may not be sent signals counts as running.
TEST_F(ProcessTest, PidFileOfAnotherUsersProcess) {
  if (!running_as_root()) GTEST_SKIP() << "only root can become another user";
  const std::string path = folder_ + "/pid";
  std::ofstream(path) << getpid() << "\n";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  const pid_t parent = getpid();
  EXPECT_EQ(status_of_child([&] {
              if (!change_user("nobody").empty()) return 10;
              return PidFile::running_process(path) == parent ? 0 : 11;
            }),
            0);
}

TEST_F(ProcessTest, PidFileOfAProcessThatHasEnded) {
  const std::string path = folder_ + "/pid";
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  std::ofstream(path) << child << "\n";
  EXPECT_EQ(PidFile::running_process(path), 0);
}

// Another server, in another container, has the same process id.
TEST_F(ProcessTest, PidFileOfAnotherWithTheSameNumberStays) {
  const std::string path = folder_ + "/pid";
  {
    PidFile file;
    ASSERT_EQ(file.write(path), "");
    std::ofstream(path + ".new") << getpid() << "\n";
    std::filesystem::rename(path + ".new", path);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ProcessTest, PidFileThatIsAFifoIsNotWaitedFor) {
  const std::string path = folder_ + "/pid";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(PidFile::running_process(path), 0);
  PidFile file;
  EXPECT_THAT(file.write(path), HasSubstr("not a regular file"));
}

TEST_F(ProcessTest, PidFileThatCannotBeWritten) {
  PidFile file;
  EXPECT_THAT(file.write("/nonexistent/pid"), HasSubstr("-P: the file /nonexistent/pid"));
}

TEST_F(ProcessTest, PortFileIsMemcacheds) {
  const std::string path = folder_ + "/ports";
  ASSERT_EQ(write_port_file(path, {{false, false, "", 11211},
                                   {false, true, "", 11211},
                                   {true, false, "127.0.0.1", 5},
                                   {true, true, "::1", 6}}),
            "");
  EXPECT_EQ(file_text(path), "TCP INET: 11211\nTCP INET6: 11211\nUDP INET: 5\nUDP INET6: 6\n");
  EXPECT_EQ(files(), 1);
  EXPECT_THAT(write_port_file("/nonexistent/ports", {}),
              HasSubstr("MEMCACHED_PORT_FILENAME: the file /nonexistent"));
}

// The started process exits with 0 when the daemon is ready. The daemon has its own session and
// runs in /.
TEST_F(ProcessTest, DaemonReportsThatItIsReady) {
  const std::string report = folder_ + "/report";
  EXPECT_EQ(status_of_child([&report] {
              const pid_t starter = getpid();
              Daemon daemon;
              if (!daemon.detach(false).empty()) return 10;
              const bool detached = getpid() != starter && getsid(0) != getpid() &&
                                    getsid(0) != getsid(starter) &&
                                    std::filesystem::current_path() == "/";
              std::ofstream(report) << (detached ? "detached" : "attached");
              if (!daemon.ready(false).empty()) return 11;
              return 0;
            }),
            0);
  EXPECT_EQ(file_text(report), "detached");
}

TEST_F(ProcessTest, DaemonLeavesItsStreams) {
  const std::string report = folder_ + "/report";
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  EXPECT_EQ(status_of_child([&report] {
              Daemon daemon;
              if (!daemon.detach(true).empty() || !daemon.ready(false).empty()) return 10;
              struct stat error_stream {};
              struct stat null {};
              const bool left = fstat(STDERR_FILENO, &error_stream) == 0 &&
                                stat("/dev/null", &null) == 0 &&
                                error_stream.st_rdev == null.st_rdev;
              std::ofstream(report) << (left ? "left" : "kept");
              return 0;
            }),
            0);
  close(done[1]);
  char byte;
  EXPECT_EQ(read(done[0], &byte, 1),
            0);  // returns when the daemon, the last holder of the other end, has ended
  close(done[0]);
  EXPECT_EQ(file_text(report), "left");
}

TEST_F(ProcessTest, DaemonThatFailsIsAFailureOfTheStart) {
  EXPECT_EQ(status_of_child([] {
              Daemon daemon;
              if (!daemon.detach(true).empty()) return 10;
              return 0;  // ends before it is ready
            }),
            1);
}

TEST(Daemon, ReadyWithoutDetachDoesNothing) {
  Daemon daemon;
  EXPECT_EQ(daemon.ready(false), "");
  struct stat error_stream {};
  EXPECT_EQ(fstat(STDERR_FILENO, &error_stream), 0);
}

TEST(Banner, SaysWhatRuns) {
  Options options;
  options.server.threads = 1;
  const std::string text = banner_text(options, {"cpu",
                                                 uint64_t{64} << 20,
                                                 {{false, false, "", 11211},
                                                  {false, true, "", 11211},
                                                  {false, true, "::1", 5},
                                                  {true, false, "127.0.0.1", 6}},
                                                 "/run/w.sock",
                                                 {"tap t0, UDP port 6"},
                                                 "eth0, native, 64 MB"});
  EXPECT_THAT(text, HasSubstr("warpcached 0."));
  EXPECT_THAT(text, HasSubstr("  nic cache eth0, native, 64 MB\n"));
  EXPECT_THAT(text, HasSubstr("  engine    cpu, 1 thread\n"));
  EXPECT_THAT(text, HasSubstr("  memory    64 MB for items and index, items up to 1 MB"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  listening tcp 0.0.0.0:11211\n            tcp [::]:11211\n            tcp [::1]:5\n"
          "            udp 127.0.0.1:6\n            unix /run/w.sock (mode 700)\n"
          "  frames    tap t0, UDP port 6\n"));
}

TEST(Banner, Sizes) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1024), "1 KB");
  EXPECT_EQ(size_text(1536), "1.5 KB");
  EXPECT_EQ(size_text(uint64_t{64} << 20), "64 MB");
  EXPECT_EQ(size_text(uint64_t{16} << 40), "16 TB");
  EXPECT_EQ(size_text(uint64_t{4096} << 40), "4096 TB");
}

TEST(Logging, LevelFollowsTheNumberOfV) {
  testing::internal::CaptureStderr();
  start_logging(0);
  EXPECT_EQ(log_verbosity(), 0u);
  spdlog::debug("connection {}", 1);
  spdlog::info("start {}", 2);
  set_log_verbosity(1);
  spdlog::debug("connection {}", 3);
  spdlog::trace("detail {}", 4);
  set_log_verbosity(3);
  EXPECT_EQ(log_verbosity(), 3u);
  spdlog::trace("detail {}", 5);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::Not(HasSubstr("connection 1")));
  EXPECT_THAT(log, HasSubstr(" info: start 2\n"));
  EXPECT_THAT(log, HasSubstr(" debug: connection 3\n"));
  EXPECT_THAT(log, testing::Not(HasSubstr("detail 4")));
  EXPECT_THAT(log, HasSubstr(" trace: detail 5\n"));
}

// If the reader does not read, lines are dropped and their number is logged; no thread waits.
TEST(Logging, LinesThatNobodyReadsAreLost) {
  EXPECT_EQ(status_of_child([] {
              int fds[2];
              if (pipe(fds) != 0 || dup2(fds[1], STDERR_FILENO) < 0) return 10;
              const std::string lines(600, '\n');
              for (int i = 0; i < 1000; ++i) write_log(lines);
              std::string read_back(1 << 20, '\0');
              const ssize_t got = read(fds[0], read_back.data(), read_back.size());
              if (got < 600 || got % 600 != 0) return 11;
              write_log("last\n");
              const std::string expected =
                  "(" + std::to_string(600'000 - got) + " lines lost)\nlast\n";
              const ssize_t rest = read(fds[0], read_back.data(), read_back.size());
              read_back.resize(static_cast<size_t>(rest));
              return read_back == expected ? 0 : 12;
            }),
            0);
}

}  // namespace
}  // namespace warpcache
