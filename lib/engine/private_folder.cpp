#include <engine/private_folder.hpp>
#include <latchkey/error.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace latchkey::detail {

namespace {

constexpr std::string_view prefix = "latchkey-";
constexpr std::size_t random_part = 6;
constexpr char const* lock_name = "owner.lock";

std::string base() {
  char const* const variable = std::getenv("TMPDIR");
  // The path of a Unix socket has at most 107 characters.
  return variable != nullptr && *variable == '/' && std::strlen(variable) < 70 ? variable : "/tmp";
}

bool same_file(int fd, int folder) {
  struct stat held {};
  struct stat there {};
  return ::fstat(fd, &held) == 0 && ::fstatat(folder, lock_name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

// The locked file of a folder, or -1: somebody has it, it is not there, or it was replaced meanwhile.
int lock_in(int folder, int more_flags) {
  int const fd = ::openat(folder, lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags, 0600);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(fd, folder)) return fd;
  ::close(fd);
  return -1;
}

int open_folder(std::string const& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void sweep_one(std::string const& path) {
  int const folder = open_folder(path);
  if (folder < 0) return;
  struct stat known {};
  if (::fstat(folder, &known) == 0 && known.st_uid == ::geteuid()) {
    int const lock = lock_in(folder, 0);
    if (lock >= 0) {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
      ::close(lock);
    } else if (::faccessat(folder, lock_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
      // Its maker ended before it had a lock, or is about to make it, and then makes another folder. One with other
      // files is none of ours, and stays.
      ::rmdir(path.c_str());
    }
  }
  ::close(folder);
}

void sweep(std::string const& where) {
  DIR* const all = ::opendir(where.c_str());
  if (all == nullptr) return;
  while (dirent const* entry = ::readdir(all)) {
    std::string_view const name = entry->d_name;
    if (name.size() == prefix.size() + random_part && name.starts_with(prefix))
      sweep_one(where + '/' + std::string(name));
  }
  ::closedir(all);
}

}  // namespace

private_folder::private_folder() {
  std::string const where = base();
  sweep(where);
  for (int attempts = 0; attempts < 8; ++attempts) {
    path_ = where + '/' + std::string(prefix) + std::string(random_part, 'X');
    if (::mkdtemp(path_.data()) == nullptr) break;
    int const folder = open_folder(path_);
    if (folder >= 0) lock_ = lock_in(folder, O_CREAT);
    if (folder >= 0) ::close(folder);
    if (lock_ >= 0) return;
    // Somebody swept it before it had a lock.
    int const why = errno;
    remove();
    errno = why;
  }
  throw lock_error(errc::connect_failed, "embedded server: no directory " + path_ + ": " + std::strerror(errno));
}

private_folder::~private_folder() {
  if (lock_ >= 0) ::close(lock_);
}

void private_folder::remove() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace latchkey::detail
