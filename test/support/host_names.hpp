#pragma once

#include <string>
#include <vector>

namespace latchkey::test {

// Host names with addresses of our choice, for this process and as long as this object lives: the test program
// puts a getaddrinfo of its own before the system's.
class host_names {
 public:
  host_names() = default;
  host_names(host_names const&) = delete;
  host_names& operator=(host_names const&) = delete;
  ~host_names();
  // The addresses in the order in which they are to be tried.
  void set(std::string const& name, std::vector<std::string> addresses);
  // Who asks for it gets no answer until set() gives it addresses, or this object ends.
  void hang(std::string const& name);
  // How often a hanging name was asked for.
  static int asked_in_vain();
};

}  // namespace latchkey::test
