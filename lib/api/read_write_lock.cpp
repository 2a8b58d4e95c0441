#include <engine/lock_key.hpp>
#include <latchkey/read_write_lock.hpp>

namespace latchkey {

read_write_lock::read_write_lock(key_ptr reads, key_ptr writes) noexcept
    : reads_(std::move(reads)), writes_(std::move(writes)) {}

distributed_lock read_write_lock::read_lock() const { return distributed_lock(reads_); }
distributed_lock read_write_lock::write_lock() const { return distributed_lock(writes_); }
std::string const& read_write_lock::name() const noexcept { return reads_->name; }
std_shared_mutex read_write_lock::as_shared_mutex() const { return std_shared_mutex(*this); }

std_shared_mutex::std_shared_mutex(read_write_lock const& lock)
    : reads_(lock.read_lock().as_mutex()), writes_(lock.write_lock().as_mutex()) {}

bool operator==(read_write_lock const& a, read_write_lock const& b) noexcept { return a.read_lock() == b.read_lock(); }

}  // namespace latchkey
