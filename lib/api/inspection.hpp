#pragma once

#include <engine/lock_key.hpp>
#include <latchkey/export.hpp>
#include <latchkey/lock_state.hpp>

#include <cstddef>
#include <memory>
#include <optional>

namespace latchkey::detail {

// The questions of an inspection, one after the other, and what their answers make.
class inspection {
 public:
  explicit inspection(std::shared_ptr<lock_key const> key) : key_(std::move(key)) {}

  // Empty: it is over.
  std::optional<query> next() const;
  // The answer to that question. False: it ends here, by the error of the call.
  bool take(operation const& call);
  lock_state result() && { return std::move(made_); }

 private:
  void read_holders(std::string_view text);
  void read_connections(std::string_view list);

  std::shared_ptr<lock_key const> key_;
  std::size_t step_ = 0;
  bool few_ = false;  // connections: their list is no longer than an answer may be
  lock_state made_;
};

// What a field of a lock's hash, or the value of a plain lock, says.
LATCHKEY_EXPORT holder holder_of(std::string_view field);
// What the line of CLIENT LIST says of the client with this id; empty: it is another's.
LATCHKEY_EXPORT std::optional<connection_info> connection_of(std::string_view line, std::string_view client_id);

}  // namespace latchkey::detail
