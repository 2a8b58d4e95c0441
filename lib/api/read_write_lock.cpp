#include <engine/lock_key.hpp>
#include <latchkey/read_write_lock.hpp>

namespace latchkey {

read_write_lock::read_write_lock(key_ptr reads, key_ptr writes) noexcept
    : reads_(std::move(reads)), writes_(std::move(writes)) {}

distributed_lock read_write_lock::read_lock() const { return distributed_lock(reads_); }
distributed_lock read_write_lock::write_lock() const { return distributed_lock(writes_); }
std::string const& read_write_lock::name() const noexcept { return reads_->name; }

bool operator==(read_write_lock const& a, read_write_lock const& b) noexcept { return a.read_lock() == b.read_lock(); }

}  // namespace latchkey
