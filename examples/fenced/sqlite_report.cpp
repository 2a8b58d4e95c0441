#include "report.hpp"

#include <sqlite3.h>

#include <stdexcept>

namespace fenced {

namespace {

class statement {
 public:
  statement(sqlite3* database, char const* text) {
    if (sqlite3_prepare_v2(database, text, -1, &made_, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(database));
  }
  statement(statement const&) = delete;
  statement& operator=(statement const&) = delete;
  ~statement() { sqlite3_finalize(made_); }
  sqlite3_stmt* get() const { return made_; }

 private:
  sqlite3_stmt* made_ = nullptr;
};

}  // namespace

void sqlite_report::close::operator()(sqlite3* database) const { sqlite3_close(database); }

sqlite_report::sqlite_report(std::string const& file) {
  sqlite3* opened = nullptr;
  int const result = sqlite3_open(file.c_str(), &opened);
  database_.reset(opened);
  if (result != SQLITE_OK) throw std::runtime_error("cannot open " + file);
  sqlite3_busy_timeout(opened, 5'000);
  if (sqlite3_exec(opened,
                   "CREATE TABLE IF NOT EXISTS report (id INTEGER PRIMARY KEY, token INTEGER, text TEXT);"
                   "INSERT OR IGNORE INTO report VALUES (1, 0, '');",
                   nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(opened));
}

// [compare]
bool sqlite_report::write(std::uint64_t token, std::string const& text) {
  // Compared and written in one statement: nobody comes between.
  statement const update(database_.get(), "UPDATE report SET token = ?1, text = ?2 WHERE id = 1 AND token <= ?1");
  sqlite3_bind_int64(update.get(), 1, static_cast<sqlite3_int64>(token));
  sqlite3_bind_text(update.get(), 2, text.c_str(), -1, SQLITE_TRANSIENT);
  if (sqlite3_step(update.get()) != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(database_.get()));
  return sqlite3_changes(database_.get()) == 1;
}
// [/compare]

std::string sqlite_report::read() {
  statement const select(database_.get(), "SELECT text FROM report WHERE id = 1");
  if (sqlite3_step(select.get()) != SQLITE_ROW) throw std::runtime_error(sqlite3_errmsg(database_.get()));
  return reinterpret_cast<char const*>(sqlite3_column_text(select.get(), 0));
}

}  // namespace fenced
