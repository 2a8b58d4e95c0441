#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace latchkey::detail {

// A list of pointers in the room of two. Of most names and owners there are many, each with one of these: a list of one
// takes no memory of its own. `T` points to something, and is null by default.
template <class T>
class few {
 public:
  few() = default;
  few(few const& other) {
    if (other.size() > 1)
      all_ = std::make_unique<std::vector<T>>(*other.all_);
    else if (!other.empty())
      one_ = *other.begin();
  }
  few(few&&) noexcept = default;
  few& operator=(few&&) noexcept = default;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return all_ ? all_->size() : static_cast<std::size_t>(one_ != nullptr); }
  std::size_t capacity() const { return all_ ? all_->capacity() : 1; }
  T* begin() { return all_ ? all_->data() : &one_; }
  T* end() { return begin() + size(); }
  T const* begin() const { return all_ ? all_->data() : &one_; }
  T const* end() const { return begin() + size(); }
  T& back() { return end()[-1]; }
  T const& operator[](std::size_t i) const { return begin()[i]; }

  // \throws std::bad_alloc: nothing has changed. Else the next push_back() does not throw.
  void make_room() {
    if (size() < capacity()) return;
    if (all_) return all_->reserve(2 * all_->size());
    auto made = std::make_unique<std::vector<T>>();
    made->reserve(2);
    made->push_back(std::move(one_));
    one_ = nullptr;
    all_ = std::move(made);
  }
  T& push_back(T next) {
    make_room();
    if (!all_) return one_ = std::move(next);
    return all_->emplace_back(std::move(next));
  }
  void erase(T* which) {
    if (all_)
      all_->erase(all_->begin() + (which - all_->data()));
    else
      one_ = nullptr;
  }

 private:
  T one_ = nullptr;                      // as long as there never were several
  std::unique_ptr<std::vector<T>> all_;  // null: see above
};

}  // namespace latchkey::detail
