#pragma once

#include <interop/support/kinds.hpp>
#include <interop/support/peer.hpp>

#include <functional>
#include <string>

namespace latchkey::test {

// What a check found wrong.
struct check_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void demand(bool fulfilled, std::string const& otherwise);
// The answer is this word.
void demand(answer const& got, std::string_view wanted, std::string const& of);

// Which library does what is checked, and which one is affected by it.
struct direction {
  peer& first;
  peer& second;
  std::string name() const { return first.library() + " > " + second.library(); }
};

// Runs a check and writes its outcome into the cell of the table for this check, kind and direction. What it returns is
// a remark for the table, a figure for instance.
void cell(std::string const& check, std::string const& kind, std::string const& direction,
          std::function<std::string()> const& body);

// Several cells of one check, filled beside each other since each takes its time.
struct cell_job {
  std::string kind;
  std::string direction;
  std::function<std::string()> body;
};
void cells_together(std::string const& check, std::vector<cell_job> const& jobs);

// A cell that cannot be filled, and why.
void no_cell(std::string const& check, std::string const& kind, std::string const& why);

}  // namespace latchkey::test
