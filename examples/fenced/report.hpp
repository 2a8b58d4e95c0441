#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct redisContext;
struct sqlite3;

namespace fenced {

/// A report that a leader writes, kept where each write brings its fencing token along. What is kept is the highest
/// token that ever wrote; a writer with a lower one was replaced meanwhile, whatever he believes, and is refused.
class report {
 public:
  virtual ~report() = default;
  /// False: refused, nothing was changed.
  virtual bool write(std::uint64_t token, std::string const& text) = 0;
  virtual std::string read() = 0;
};

/// In a row of an SQLite table. \throws std::runtime_error if the file cannot be used.
class sqlite_report final : public report {
 public:
  explicit sqlite_report(std::string const& file);
  bool write(std::uint64_t token, std::string const& text) override;
  std::string read() override;

 private:
  struct close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, close> database_;
};

/// In a hash of a Redis server. \throws std::runtime_error if the server does not do as asked.
class redis_report final : public report {
 public:
  explicit redis_report(std::string const& socket_path);
  bool write(std::uint64_t token, std::string const& text) override;
  std::string read() override;

 private:
  struct close {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, close> context_;
};

}  // namespace fenced
