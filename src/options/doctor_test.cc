// SPDX-License-Identifier: Apache-2.0
#include "options/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace warpcache {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    std::string name = testing::TempDir() + "warpcache_doctor_" + std::string(6, 'X');
    machine_.root = mkdtemp(name.data());
    machine_.open_files_max = 1 << 20;
    machine_.locked_bytes_max = UINT64_MAX;
    machine_.cpus = 4;
    write("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable:    4000000 kB\nSwapTotal: 0 kB\n");
    write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("/proc/sys/net/core/somaxconn", "4096\n");
  }
  ~DoctorTest() override { std::filesystem::remove_all(machine_.root); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = machine_.root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string text() { return findings_text(examine(options_, machine_)); }
  // The lines that are to be mended, of which there is one.
  void expect_mend(const char* subject, const char* command) {
    EXPECT_THAT(text(), HasSubstr(std::string("mend  ") + subject + ": ")) << text();
    EXPECT_THAT(text(), HasSubstr(std::string("> ") + command)) << text();
    EXPECT_TRUE(needs_mending(examine(options_, machine_)));
  }

  Options options_;
  Machine machine_;
};

TEST_F(DoctorTest, AFineMachine) {
  EXPECT_THAT(text(), Not(HasSubstr("mend ")));
  EXPECT_THAT(text(), HasSubstr("Nothing is to be mended."));
}

TEST_F(DoctorTest, EachLackHasItsCommand) {
  options_.store.memory_bytes = uint64_t{8} << 30;
  expect_mend("memory", "give -m 3515 or less");
  options_.store.memory_bytes = uint64_t{64} << 20;
  write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  expect_mend("huge pages", "echo madvise");
  options_.store.huge_pages = false;
  machine_.open_files_max = 1024;
  expect_mend("open files", "ulimit -Hn 1280");
  machine_.open_files_max = 1280;
  options_.listen.backlog = 5000;
  expect_mend("backlog", "sysctl net.core.somaxconn=5000");
  options_.listen.backlog = 1024;
  machine_.cpus = 2;
  expect_mend("processors", "give -t 2");
  machine_.cpus = 8;
  write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  expect_mend("frequency", "cpupower");
  write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  EXPECT_THAT(text(), HasSubstr("Nothing is to be mended."));
}

TEST_F(DoctorTest, DevicesAreAskedForOnlyIfTheyAreUsed) {
  EXPECT_THAT(text(), Not(HasSubstr("GPU")));
  EXPECT_THAT(text(), Not(HasSubstr("IOMMU")));
  options_.server.engine = EngineChoice::kCuda;
  expect_mend("GPU", "install it");
  write("/proc/driver/nvidia/version", "NVRM");
  EXPECT_THAT(text(), HasSubstr("ok    GPU"));
  options_.frames.emplace_back().kind = FramesOptions::Kind::kDpdk;
  expect_mend("IOMMU", "boot with");
  expect_mend("reserved huge pages", "sysctl vm.nr_hugepages=512");
}

}  // namespace
}  // namespace warpcache
