// SPDX-License-Identifier: Apache-2.0
#include "store/host/restart_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <type_traits>

namespace warpcache::store {
namespace {

static_assert(std::is_trivially_copyable_v<RestartHeader>);
static_assert(std::has_unique_object_representations_v<RestartHeader>);

constexpr char kMagic[8] = {'W', 'C', 'R', 'E', 'S', 'T', 'A', 'R'};
// After the arena: the magic and the token.
constexpr uint64_t kEndBytes = 4096;
constexpr uint64_t kDescriptionBytesMax = uint64_t{4} << 30;

struct FileEnd {
  char magic[8];
  uint64_t token;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) (void)close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, const void* data, uint64_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, at, std::min<uint64_t>(size, 1 << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<uint64_t>(written);
  }
  return true;
}

bool read_all(int fd, void* data, uint64_t size) {
  auto* at = static_cast<uint8_t*>(data);
  while (size > 0) {
    const ssize_t got = read(fd, at, std::min<uint64_t>(size, 1 << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

// FNV-1a, eight bytes at a time.
uint64_t mix(uint64_t sum, const void* data, uint64_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  for (; size > 0;) {
    uint64_t word = 0;
    const uint64_t taken = std::min<uint64_t>(size, sizeof word);
    std::memcpy(&word, at, taken);
    sum = (sum ^ word) * 0x100000001b3;
    sum ^= sum >> 29;
    at += taken;
    size -= taken;
  }
  return sum;
}

uint64_t checksum_of(RestartHeader header, const std::vector<uint8_t>& tables) {
  header.checksum = 0;
  return mix(mix(0xcbf29ce484222325, &header, sizeof header), tables.data(), tables.size());
}

uint64_t new_token() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

std::string refused(const std::string& path, const char* what) {
  return "-e " + path + ": " + what + ": " + std::strerror(errno) + ".";
}

}  // namespace

RestartHeader restart_header(const std::string& version) {
  RestartHeader header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  version.copy(header.version, sizeof header.version - 1);
  return header;
}

RestartFile::~RestartFile() {
  if (fd_ >= 0) (void)close(fd_);
}

std::string RestartFile::open(const std::string& path, const RestartHeader& wanted) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd_ < 0) return refused(path, "the file cannot be opened");
  struct stat state {};
  if (fstat(fd_, &state) != 0 || !S_ISREG(state.st_mode)) {
    return "-e " + path + ": this is no regular file.";
  }
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) return "-e " + path + ": another server uses this file.";
  std::string why;
  std::string failure = read_description(wanted, &why);
  if (!failure.empty()) return failure;
  const auto size = static_cast<uint64_t>(state.st_size);
  FileEnd end{};
  if (why.empty()) {
    const bool fits =
        size == wanted.arena_bytes + kEndBytes &&
        pread(fd_, &end, sizeof end, static_cast<off_t>(wanted.arena_bytes)) == sizeof end;
    if (!fits || std::memcmp(end.magic, kMagic, sizeof kMagic) != 0 || end.token != header_.token) {
      why = "it is not the file that the description was written for";
    }
  }
  (void)unlink((path_ + ".meta").c_str());
  if (why.empty()) {
    found_ = true;
    // Until the next clean stop no description fits.
    end = {};
    if (pwrite(fd_, &end, sizeof end, static_cast<off_t>(wanted.arena_bytes)) != sizeof end) {
      return refused(path, "the file cannot be written");
    }
    return "";
  }
  if (size != 0 || described_)
    note_ = "-e " + path + ": the items in it are not used, " + why + ".";
  return start_empty(wanted.arena_bytes);
}

std::string RestartFile::start_empty(uint64_t arena_bytes) {
  tables_ = {};
  if (ftruncate(fd_, 0) != 0) return refused(path_, "the file cannot be written");
  // Without space in the file system the server would be ended when it touches a page.
  struct statvfs space {};
  if (fstatvfs(fd_, &space) == 0 &&
      uint64_t{space.f_bavail} * space.f_frsize < arena_bytes + kEndBytes) {
    return "-e " + path_ + ": its file system has less space than -m asks for.";
  }
  if (ftruncate(fd_, static_cast<off_t>(arena_bytes + kEndBytes)) != 0) {
    return refused(path_, "the file cannot be made as large as -m");
  }
  return "";
}

// `why` gets the reason why there is no store to take over, or stays empty. Returns an error: the
// description is none, so it may be somebody else's file.
std::string RestartFile::read_description(const RestartHeader& wanted, std::string* why) {
  const std::string path = path_ + ".meta";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) {
    *why = "the server that used it was not stopped by SIGUSR1";
    return "";
  }
  described_ = true;
  if (file.get() < 0) return refused(path_, "the description beside it cannot be opened");
  RestartHeader read;
  if (!read_all(file.get(), &read, sizeof read) ||
      std::memcmp(read.magic, kMagic, sizeof kMagic) != 0) {
    return "-e " + path_ + ": " + path +
           " is not a description that a clean stop wrote; remove it to start empty.";
  }
  if (read.layout != wanted.layout ||
      std::memcmp(read.version, wanted.version, sizeof read.version) != 0) {
    *why = "another version of the server wrote them";
  } else if (read.arena_bytes != wanted.arena_bytes || read.segment_size != wanted.segment_size ||
             read.base_depth != wanted.base_depth) {
    *why = "-m or -o hashpower was another";
  } else if (read.tables_bytes > kDescriptionBytesMax) {
    *why = "the description is damaged";
  } else {
    tables_.resize(read.tables_bytes);
    header_ = read;
    uint8_t more = 0;
    const bool whole =
        read_all(file.get(), tables_.data(), tables_.size()) && ::read(file.get(), &more, 1) == 0;
    if (!whole || checksum_of(read, tables_) != read.checksum) *why = "the description is damaged";
  }
  return "";
}

bool RestartFile::map(Mapping& arena, bool huge_pages) const {
  struct stat state {};
  if (fstat(fd_, &state) != 0) return false;
  return arena.map_file(fd_, static_cast<uint64_t>(state.st_size) - kEndBytes, huge_pages);
}

std::string RestartFile::save(const RestartHeader& header, const std::vector<uint8_t>& tables) {
  RestartHeader described = header;
  described.tables_bytes = tables.size();
  described.token = new_token();
  described.checksum = checksum_of(described, tables);
  FileEnd end{};
  std::memcpy(end.magic, kMagic, sizeof kMagic);
  end.token = described.token;
  const bool kept =
      pwrite(fd_, &end, sizeof end, static_cast<off_t>(header.arena_bytes)) == sizeof end &&
      fdatasync(fd_) == 0;
  if (!kept) return refused(path_, "the file cannot be written");
  const std::string path = path_ + ".meta";
  const std::string made = path + ".new";
  (void)unlink(made.c_str());
  const Descriptor file(
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool written = file.get() >= 0 && write_all(file.get(), &described, sizeof described) &&
                       write_all(file.get(), tables.data(), tables.size()) &&
                       fsync(file.get()) == 0 && rename(made.c_str(), path.c_str()) == 0;
  if (written) return "";
  std::string failure = refused(path_, "the description beside it cannot be written");
  (void)unlink(made.c_str());
  return failure;
}

}  // namespace warpcache::store
