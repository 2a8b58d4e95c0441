#pragma once

#include <engine/connection.hpp>
#include <engine/direct_lane.hpp>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace latchkey::detail {

// Asks the server over the direct lane whether it is still there, while nobody has borrowed it: the machine lends
// the lane again when it has the answer. Lives on the strand.
class lane_check : public std::enable_shared_from_this<lane_check> {
 public:
  class listener {
   public:
    virtual void on_lane_received(std::uint32_t serial, std::string_view bytes) = 0;
    virtual void on_lane_broken(std::uint32_t serial) = 0;

   protected:
    ~listener() = default;
  };

  lane_check(io_strand const& strand, listener& whom, std::shared_ptr<direct_lane> lane);

  std::uint32_t serial() const { return lane_->serial(); }
  void start(std::string_view question);
  void close();
  bool over() const { return listener_ == nullptr; }
  void detach() { listener_ = nullptr; }

 private:
  void wait();
  void readable();
  void broken();

  listener* listener_;  // null: closed
  std::shared_ptr<direct_lane> lane_;
  asio::posix::basic_stream_descriptor<io_strand> socket_;
  std::array<char, 512> buffer_;
};

}  // namespace latchkey::detail
