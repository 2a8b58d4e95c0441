// One redis-cli that stays: a question costs a line through a pipe and no process.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <sys/types.h>

namespace latchkey::outside {

class redis_cli {
 public:
  explicit redis_cli(std::string const& socket);
  redis_cli(redis_cli const&) = delete;
  redis_cli& operator=(redis_cli const&) = delete;
  ~redis_cli();

  // What it prints for this command, line by line. Words have no blanks in them.
  std::vector<std::string> ask(std::string const& command);

 private:
  std::FILE* in_ = nullptr;
  std::FILE* out_ = nullptr;
  pid_t pid_ = -1;
};

}  // namespace latchkey::outside
