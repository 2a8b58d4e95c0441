#pragma once

#include <latchkey/export.hpp>

#include <string>

namespace latchkey::detail {

// A fresh folder for temporary files, of this process alone. It has a file that is locked (flock) as long as its owner
// lives, however that ends; who makes the next one removes those of this user whose lock is free.
class LATCHKEY_EXPORT private_folder {  // for latchkey::testing, beside a shared library
 public:
  // \throws lock_error connect_failed: there can be none; the text says why.
  private_folder();
  // Leaves the folder: a forked child must not remove its parent's.
  ~private_folder();
  private_folder(private_folder const&) = delete;
  private_folder& operator=(private_folder const&) = delete;

  std::string const& path() const { return path_; }
  void remove() noexcept;

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace latchkey::detail
