#pragma once

#include <base/fixed_text.hpp>
#include <machine/context.hpp>
#include <machine/home.hpp>
#include <wire/kind.hpp>

#include <string_view>

namespace latchkey::detail {

// What all parts of a name's machine know.
struct lock_name {
  lock_name(context& shared, home& at, kind const& which, std::string_view name)
      : shared_(shared), at_(&at), kind_(&which), tally_(shared.tally(which.rules().name)), name_(name) {}

  // For config::on_event.
  void note(event_type type, std::uint64_t owner = 0, error_code error = {}, std::string_view text = {},
            nanoseconds took = {}, std::uint64_t about = 0) const {
    if (shared_.observed) shared_.note(type, name_, owner, error, text, took, kind_->rules().name, about);
  }

  // A call that wanted it has ended without.
  void note_gave_up(operation const& call) const;

  context& shared_;
  home* at_;             // of the server that has it
  kind_ptr const kind_;  // handles may go before what they began has ended
  kind_stats& tally_;
  fixed_text const name_;
};

}  // namespace latchkey::detail
