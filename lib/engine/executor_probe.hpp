#pragma once

#include <boost/asio/any_io_executor.hpp>

namespace latchkey::detail {

namespace asio = boost::asio;

// Is the calling thread inside this executor? Then a blocking call would wait for its own thread. Executors of kinds
// that cannot be asked are known by a mark that is set around the client's own handlers.
class executor_probe {
 public:
  explicit executor_probe(asio::any_io_executor const& executor);

  bool inside() const noexcept;

  // Marks the calling thread while a handler runs there.
  class mark {
   public:
    explicit mark(executor_probe const& probe) noexcept;
    ~mark();
    mark(mark const&) = delete;
    mark& operator=(mark const&) = delete;

   private:
    friend class executor_probe;
    executor_probe const* probe_;
    mark* outer_;
  };

 private:
  asio::any_io_executor executor_;
};

}  // namespace latchkey::detail
