#pragma once
// The server of the model of local turns: the scripts as single steps, messages, time to live.

#include "turns_state.hpp"

struct turns_at_server : turns_world {
  turns_client& of(int c) { return clients[c]; }
  void violate(turns_violation what) {
    if (broken == fine) broken = what;
  }
  bool shows(int c) const { return server.holder == field_of(c, clients[c].tenure.field); }
  bool reads(int c, int by) const { return server.readers[field_of(c, by) - 1] > 0; }

  // How many others than `c` heard it.
  int publish(int c) {
    if (!rules.publishes) return 0;
    int heard = 0;
    for (int i = 0; i < 2; ++i)
      if (clients[i].subscribed == 2) clients[i].message = 1, heard += i != c;
    return heard;
  }

  // The data goes, and not by its client's release.
  void take_away(turns_gone_by how) {
    for (int i = 0; i < 2; ++i)
      for (auto& r : of(i).read)
        if (r.left && reads(i, r.by)) r.gone = 1;
    if (server.holder == 0) return;
    int const c = client_of(server.holder);
    if (clients[c].tenure.lasts && shows(c)) {
      auto& t = of(c).tenure;
      t.gone = 1, t.gone_by = how, t.gone_heard = t.gone_turn = 0;
    }
    if (field_of(c, clients[c].other.by) == server.holder && clients[c].other.where) of(c).other.gone = 1;
  }

  turns_answer grant(u8 field, int lease) {
    if (server.holder != field) server.clear(false);
    server.holder = field, server.count = 1, server.ttl = u8(lease);
    return done;
  }

  // `counted`: what an acquire that finds it busy hears as the time to live, a release as the number of listeners.
  turns_answer run(int c, turns_order const& o, bool is_late, u8& counted) {
    u8 const field = field_of(c, o.by);
    bool const there = server.holder == field;
    switch (o.what) {
      case acquire:
        if ((server.holder == 0 && !server.read()) || there) return grant(field, o.lease);
        if (!is_late && server.holder && client_of(server.holder) == c && !clients[c].other.where) violate(self_busy);
        counted = server.ttl;
        return busy;
      case make_it:
      case renew:
        if (!there) return absent;
        if (o.what == make_it) server.count = o.count;
        if (rules.only_raises ? o.lease > server.ttl : o.lease > 0) server.ttl = o.lease;
        return done;
      case hand_off: return hand_over(c, o, is_late, counted);
      case release:
        if (!there) return absent;
        end_write();
        counted = u8(publish(c));
        return done;
      case read_acquire:
      case read_release: return run_read(c, o, is_late, counted);
      case force:
        if (server.holder == 0 && !server.read()) return absent;
        take_away(server.holder && client_of(server.holder) == c ? by_itself : by_others);
        server.clear(false);
        publish(c);
        return done;
      default: return silent;
    }
  }

  // One step, of which nobody hears. As lib/wire/reentrant_scripts.cpp has it: the new field is written, the old one
  // deleted.
  turns_answer hand_over(int c, turns_order const& o, bool is_late, u8& counted) {
    u8 const from = field_of(c, o.by), to = field_of(c, o.count);
    if (server.holder == from && from == to) {
      server.clear(false);
      violate(handed_to_itself);
      return done;
    }
    if (server.holder == from) {
      server.holder = to, server.count = 1, server.ttl = o.lease;
      server.age = 0, server.turns = later(server.turns);
      return done;
    }
    if (server.holder == 0 || server.holder == to) return grant(to, o.lease);
    if (!is_late && client_of(server.holder) == c && !clients[c].other.where) violate(self_busy);
    counted = server.ttl;
    return busy;
  }

  // What is read stays, its writer's own as well.
  void end_write() {
    auto const was = server;
    server.clear(false);
    std::copy(was.readers, was.readers + most_fields, server.readers);
    if (server.read()) server.ttl = std::max(was.longest_read(), u8(1));
  }

  turns_answer run_read(int c, turns_order const& o, bool is_late, u8& counted) {
    u8& own = server.readers[field_of(c, o.by) - 1];
    if (o.what == read_acquire) {
      if (server.holder != 0 && server.holder != field_of(c, o.by)) {
        if (!is_late && client_of(server.holder) == c) violate(self_busy);
        counted = server.ttl;
        return busy;
      }
      own = std::max(own, u8(o.lease + 1)), server.ttl = std::max(server.ttl, o.lease);
      return done;
    }
    if (own == 0) return absent;
    own = 0;
    if (server.holder) return done;
    if (server.longest_read() > 0) {
      server.ttl = server.longest_read();
      return done;
    }
    server.clear(false);
    publish(c);
    return done;
  }

  void age_server() {
    if (server.holder == 0 && !server.read()) return;
    for (u8& one : server.readers)
      if (one > 1) --one;
    server.age = later(server.age);
    if (sizes.hand_offs && server.turns) server.run_age = later(server.run_age);
    if (server.ttl && --server.ttl == 0) server.clear(true);
  }
};
