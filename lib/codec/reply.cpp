#include <codec/reply.hpp>

#include <hiredis/read.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <new>
#include <string_view>
#include <utility>

namespace latchkey::detail {

namespace {

// What hiredis' reader builds a reply with: our tree directly, within our limits. Its storage is used again for
// the next reply. Also the place where the difference between hiredis 0.14 and 1.x is hidden.
struct reply_builder {
  static constexpr std::size_t max_depth = 8;       // arrays in each other
  static constexpr std::size_t max_line = 1 << 16;  // a status, an error
  static constexpr std::size_t max_number = 32;     // the digits of a number or a length

  reply root;
  std::size_t elements = 0;       // announced so far by the arrays of this reply
  char const* problem = nullptr;  // why this builder made the reader stop
};

// So much is set aside on the word of a peer; what is more must arrive first.
constexpr std::size_t set_aside = 64;

reply_builder& builder_of(redisReadTask const* task) { return *static_cast<reply_builder*>(task->privdata); }

void* refuse(redisReadTask const* task, char const* problem) {
  builder_of(task).problem = problem;
  return nullptr;
}

// Where the value of this task belongs. The address holds until the next element of the same array begins, and by
// then this one is complete.
reply& place_for(redisReadTask const* task) {
  auto& builder = builder_of(task);
  if (task->parent) return static_cast<reply*>(task->parent->obj)->elements.emplace_back();
  builder.elements = 0;
  auto& root = builder.root;
  root.integer = 0;
  root.text.clear();
  root.elements.clear();
  return root;
}

// No exception may leave through hiredis, which is C.
template <class Make>
void* guarded(redisReadTask const* task, Make make) noexcept {
  try {
    return make();
  } catch (...) {
    return refuse(task, "out of memory");
  }
}

void* make_string(redisReadTask const* task, char* text, std::size_t size) noexcept {
  std::string_view const value(text, size);
  auto kind = reply::type::string;
  switch (task->type) {
    case REDIS_REPLY_STRING:
      // hiredis skips these two bytes unread; it only calls when they are there.
      if (text[size] != '\r' || text[size + 1] != '\n') return refuse(task, "a bulk string does not end where it says");
      break;
    case REDIS_REPLY_STATUS: kind = reply::type::status; break;
    case REDIS_REPLY_ERROR: kind = reply::type::error; break;
    default: return refuse(task, "a type of RESP3");
  }
  if (kind != reply::type::string && value.find_first_of("\r\n") != value.npos)
    return refuse(task, "a line break inside a line");
  return guarded(task, [&] {
    auto& made = place_for(task);
    made.kind = kind;
    made.text.assign(value);
    return &made;
  });
}

// The count is an int in hiredis 0.14 and a size_t since 1.0.
template <class Count>
void* make_array(redisReadTask const* task, Count announced) noexcept {
  if (task->type != REDIS_REPLY_ARRAY) return refuse(task, "a type of RESP3");
  std::size_t depth = 1;
  for (auto const* outer = task->parent; outer; outer = outer->parent) ++depth;
  if (depth > reply_builder::max_depth) return refuse(task, "arrays nested too deep");
  auto const count = static_cast<std::size_t>(announced);
  auto& builder = builder_of(task);
  auto const before = task->parent ? builder.elements : 0;
  if (count > reply_reader::max_elements - before) return refuse(task, "an array with too many elements");
  return guarded(task, [&] {
    auto& made = place_for(task);
    builder.elements = before + count;
    made.kind = reply::type::array;
    made.elements.reserve(std::min(count, set_aside));
    return &made;
  });
}

void* make_integer(redisReadTask const* task, long long value) noexcept {
  return guarded(task, [&] {
    auto& made = place_for(task);
    made.kind = reply::type::integer;
    made.integer = value;
    return &made;
  });
}

void* make_nil(redisReadTask const* task) noexcept {
  if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_ARRAY) return refuse(task, "a type of RESP3");
  return guarded(task, [&] {
    auto& made = place_for(task);
    made.kind = reply::type::nil;
    return &made;
  });
}

// The tree belongs to the builder.
void free_nothing(void*) noexcept {}

template <class Functions>
Functions all_functions() {
  Functions made{};
  made.createString = [](redisReadTask const* task, char* text, std::size_t size) {
    return make_string(task, text, size);
  };
  made.createArray = make_array;
  made.createInteger = [](redisReadTask const* task, long long value) { return make_integer(task, value); };
  made.createNil = [](redisReadTask const* task) { return make_nil(task); };
  if constexpr (requires { made.createDouble; })
    made.createDouble = [](redisReadTask const* task, double, char*, std::size_t) {
      return refuse(task, "a type of RESP3");
    };
  if constexpr (requires { made.createBool; })
    made.createBool = [](redisReadTask const* task, int) { return refuse(task, "a type of RESP3"); };
  made.freeObject = free_nothing;
  return made;
}

// The tasks are an array of values in hiredis 0.14 and of pointers since 1.0.
template <class Reader>
redisReadTask const& current_task(Reader const& reader) {
  if constexpr (requires { reader.rstack; })
    return reader.rstack[reader.ridx];
  else
    return *reader.task[reader.ridx];
}

}  // namespace

// The functions that fill the `reply_builder` to which a reader's `privdata` points.
redisReplyObjectFunctions& building_functions() {
  static auto the_ones = all_functions<redisReplyObjectFunctions>();
  return the_ones;
}

// Looks at what a reader waits for. False: an announced length is out of bounds, or a line has no end; `problem` says
// so.
bool unfinished_is_bounded(redisReader const& reader, char const*& problem) {
  if (reader.ridx < 0 || reader.pos >= reader.len) return true;
  std::string_view const rest(reader.buf + reader.pos, reader.len - reader.pos);
  auto const type = current_task(reader).type;
  if (type == REDIS_REPLY_STATUS || type == REDIS_REPLY_ERROR) {
    if (rest.size() <= reply_builder::max_line) return true;
    problem = "a line without an end";
    return false;
  }
  auto const end = rest.substr(0, reply_builder::max_number + 2).find("\r\n");
  if (end == rest.npos) {
    if (rest.size() <= reply_builder::max_number) return true;
    problem = "a number without an end";
    return false;
  }
  // Only a bulk string waits for more behind a complete line.
  std::size_t length = 0;
  auto const parsed = std::from_chars(rest.data(), rest.data() + end, length);
  if (parsed.ec == std::errc() && length <= reply_reader::max_bytes) return true;
  problem = "a bulk string beyond the limit";
  return false;
}

namespace {

struct hiredis_closer {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};

// Lives at one address, to which hiredis keeps a pointer.
struct reading {
  reading() : reader(redisReaderCreateWithFunctions(&building_functions())) {
    if (!reader) throw std::bad_alloc();
    reader->privdata = &builder;
  }

  reply_builder builder;
  std::unique_ptr<redisReader, hiredis_closer> reader;
};

}  // namespace

void reply_reader::closer::operator()(void* reader) const { delete static_cast<reading*>(reader); }

reply_reader::reply_reader() : reader_(new reading) {}
reply_reader::~reply_reader() = default;
reply_reader::reply_reader(reply_reader&&) noexcept = default;
reply_reader& reply_reader::operator=(reply_reader&&) noexcept = default;

void reply_reader::feed(std::string_view bytes) {
  if (bytes.empty() || !problem_.empty()) return;
  auto& reader = *static_cast<reading*>(reader_.get())->reader;
  pending_ += bytes.size();
  // next() reports what goes wrong here.
  redisReaderFeed(&reader, bytes.data(), bytes.size());
}

reply_reader::result reply_reader::next(reply& out) {
  if (!problem_.empty()) return result::malformed;
  auto& [builder, owned] = *static_cast<reading*>(reader_.get());
  auto& reader = *owned;
  void* done = nullptr;
  if (redisReaderGetReply(&reader, &done) != REDIS_OK) {
    problem_ = builder.problem ? builder.problem : reader.errstr;
    if (problem_.empty()) problem_ = "unreadable";
    return result::malformed;
  }
  auto const unread = done ? reader.len - reader.pos : 0;
  if (pending_ - unread > max_bytes) {
    problem_ = "a reply beyond the limit";
    return result::malformed;
  }
  if (done) {
    pending_ = unread;
    std::swap(out, builder.root);
    return result::reply;
  }
  if (char const* problem = nullptr; !unfinished_is_bounded(reader, problem)) {
    problem_ = problem;
    return result::malformed;
  }
  return result::more;
}

}  // namespace latchkey::detail
