#pragma once

namespace latchkey::detail {

class name_machine;

// Machines of one name, one for each kind, stand in a ring. This is the place of one of them.
class namesakes {
 public:
  explicit namesakes(name_machine& of) : of_(of) {}
  ~namesakes() {
    namesakes* last = this;
    while (last->next_ != this) last = last->next_;
    last->next_ = next_;
  }
  namesakes(namesakes const&) = delete;
  namesakes& operator=(namesakes const&) = delete;

  // `other` is of a different kind.
  void meet(namesakes& other) {
    next_ = other.next_;
    other.next_ = this;
  }
  // Of one without namesakes itself.
  name_machine& next() const { return next_->of_; }

 private:
  name_machine& of_;
  namesakes* next_ = this;
};

}  // namespace latchkey::detail
