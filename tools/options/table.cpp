#include <options/table.hpp>

namespace latchkey::tool {
namespace {

constexpr std::string_view kinds = "lock|fair|fenced|spin|plain|non-reentrant|read|write|semaphore";

constexpr option common[] = {
    {"uri",
     0,
     "URI",
     words::text,
     {},
     "the server: redis[s]://HOST[:PORT][/DB], unix:///PATH[?db=N], redis[s]-sentinel://HOST[:PORT],.../NAME or "
     "redis[s]-cluster://HOST[:PORT],...; no password"},
    {"cacert", 0, "FILE", words::file, {}, "authorities for rediss://, in PEM (those of the system)"},
    {"cert", 0, "FILE", words::file, {}, "certificate of this client, with its chain (none)"},
    {"key", 0, "FILE", words::file, {}, "private key of this client (in the file of --cert)"},
    {"json", 0, {}, words::none, {}, "results as JSON, one object a line"},
    {"quiet", 'q', {}, words::none, {}, "errors only"},
    {"verbose", 'v', {}, words::none, {}, "also what the client sees on its connections"},
    {"help", 'h', {}, words::none, {}, "print this"},
    {"version", 0, {}, words::none, {}, "print the versions of latchkey, Boost and hiredis"},
    {"manual", 0, {}, words::none, {}, "print latchkey(1), for man -l -"},
};

constexpr std::string_view how_long = "wait at most this long for the lock (forever), and 2s to 5s for the server";
constexpr option wait_for_it{"wait", 'w', "D", words::duration, {}, how_long};
constexpr option no_wait{"no-wait", 'n', {}, words::none, {}, "as --wait 0"};
constexpr option kind_of_it{"kind", 0, "KIND", words::choice, kinds, "kind of the lock (lock)"};

constexpr option of_run[] = {
    wait_for_it,
    no_wait,
    {"lease", 0, "D", words::duration, {}, "lease of the lock, renewed every third of it (30s)"},
    {"max-hold", 0, "D", words::duration, {}, "end the command when it has held the lock for so long (forever)"},
    {"grace", 0, "D", words::duration, {}, "time between TERM and KILL; at most half of the lease (5s or a quarter)"},
    kind_of_it,
    {"permits", 0, "N", words::number, {}, "of a semaphore: create it with N permits, if it is not there"},
    {"also", 0, "NAME", words::name, {}, "take this lock as well, all or none; may be given several times", true},
    {"on-loss", 0, "WAY", words::choice, "term|kill|ignore",
     "what becomes of the command when the lock is lost (term)"},
    {"orphans", 0, "WAY", words::choice, "wait|kill|ignore", "what becomes of processes that it leaves behind (wait)"},
    {"shell", 0, "TEXT", words::text, {}, "run /bin/sh -c TEXT"},
    {"note",
     0,
     "TEXT",
     words::text,
     {},
     "why the lock is held, shown by status to whoever may see CLIENT LIST; at most 200 bytes"},
    {"result", 0, "FILE", words::file, {}, "write how it ended there, as JSON"},
    {"busy-exit-code", 'E', "N", words::number, {}, "exit code when the wait ended (75)"},
    {"lost-exit-code", 0, "N", words::number, {}, "exit code when the lock was lost (79)"},
};

constexpr option of_acquire[] = {
    {"lease", 0, "D", words::duration, {}, "how long the lock is held at most; needed, since nothing renews it"},
    wait_for_it,
    no_wait,
    kind_of_it,
};

constexpr option of_extend[] = {
    {"lease", 0, "D", words::duration, {}, "from now for so long (as it was acquired)"},
};

constexpr option of_force_unlock[] = {
    {"holder", 0, "UUID:N", words::text, {}, "the holder that is to lose the lock, as status shows it"},
    {"any", 0, {}, words::none, {}, "whoever holds it now"},
    {"yes", 0, {}, words::none, {}, "do not ask; needed where standard input is no terminal"},
};

constexpr option of_doctor[] = {
    {"admin-uri-file", 0, "FILE", words::file, {}, "a file with the URI of a user who may read settings"},
    {"user", 0, "NAME", words::text, {}, "ask the server what this user may, instead of using locks"},
    {"kind", 0, "KIND,...", words::text, {}, "the kinds of locks that are to be used (lock)"},
    {"lease", 0, "D", words::duration, {}, "the shortest lease in use, which delays are compared with (30s)"},
    {"scratch", 0, "PREFIX", words::text, {}, "what the names begin with that are used and removed (latchkey-doctor)"},
    {"strict", 0, {}, words::none, {}, "exit with 1 also for a warning"},
};

constexpr option of_list[] = {
    {"limit", 0, "N", words::number, {}, "stop after N locks"},
    {"kind", 0, "KIND", words::choice, "lock|plain", "plain: look at strings instead of hashes (lock)"},
};

constexpr option of_bench[] = {
    {"duration", 0, "D", words::duration, {}, "measure for so long (3s)"},
    {"threads", 0, "N", words::number, {}, "callers, each with a lock of its own (1)"},
};

constexpr option of_wait[] = {
    {"wait",
     'w',
     "D",
     words::duration,
     {},
     "wait at most this long (forever), and 2s to 5s for each answer of a server"},
};

constexpr subcommand all_subcommands[] = {
    {"run",
     {},
     "NAME [--] COMMAND [ARG...]",
     {},
     "run a command while holding a lock",
     "Takes the lock, runs COMMAND, and releases the lock when it and everything it started have ended. The lease is "
     "renewed all the while. When it cannot be, or the lock is lost, the command is ended before somebody else can "
     "hold "
     "the lock; when latchkey itself is killed, so is everything that it ran.\n"
     "The first word behind NAME that is no option begins the command, which is run without a shell. It sees "
     "LATCHKEY_LOCK, LATCHKEY_KIND, LATCHKEY_OWNER, LATCHKEY_TOKEN, LATCHKEY_LEASE_MS and, of a fenced lock, "
     "LATCHKEY_FENCE; in a run within a run also LATCHKEY_OUTER_TOKENS, by which a lock is refused that is held "
     "further out: it would wait for itself.",
     of_run,
     1,
     -1,
     true},
    {"status",
     "who",
     "NAME",
     {},
     "show who holds a lock",
     "Says how it is held, by whom, where the holder's connection comes from, until when, who stands in the line of a "
     "fair "
     "lock, and how many connections wait to hear of the release. The exit code is 0 if it is held and 1 if it is "
     "free. A number with a time to live may be a plain lock of another library or a semaphore, and counts as held. "
     "Also called who.",
     {},
     1,
     1,
     false},
    {"list",
     {},
     "[PATTERN]",
     {},
     "show the locks that are held",
     "One line for each lock whose name fits PATTERN, in which * ? and [...] are wildcards: name, kind, holders, and "
     "when "
     "it ends unless it is renewed. Plain locks, which are strings, are shown by --kind plain alone, and semaphores "
     "not "
     "at all. The server is never stopped by it: names are asked for in small steps, and locks "
     "that come or go meanwhile may be missed. Of a cluster all masters are asked, one after the other.",
     of_list,
     0,
     1,
     false},
    {"wait",
     {},
     "NAME",
     {},
     "wait until a lock is free, without taking it",
     "When this ends somebody else may have the lock again.",
     of_wait,
     1,
     1,
     false},
    {"acquire",
     {},
     "NAME",
     {},
     "take a lock for a script, and print its token",
     "For scripts whose lock spans several commands: the lock is held until it is released with the token, or its "
     "lease ends. Nothing renews it: extend it between commands. Prefer run where one command is enough.\n"
     "token=$(latchkey acquire --lease 10m backup) || exit",
     of_acquire,
     1,
     1,
     false},
    {"extend",
     {},
     "[TOKEN]",
     {},
     "begin the lease of a token anew",
     "The token is that of acquire, or of a surrounding run: the operand, the first line of standard input for -, or "
     "LATCHKEY_TOKEN. A lease that is longer already stays as it is. The exit code is 1 if the lock is not held by it "
     "any more.",
     of_extend,
     0,
     1,
     false},
    {"held",
     {},
     "[TOKEN]",
     {},
     "ask whether the lock of a token is still held",
     "For the token see extend. The exit code is 0 if the server still shows the hold, and 1 if it does not.",
     {},
     0,
     1,
     false},
    {"release",
     {},
     "[TOKEN]",
     {},
     "release the lock of a token",
     "For the token see extend. The exit code is 1 if the lock was not held by it any more; then nothing was changed.",
     {},
     0,
     1,
     false},
    {"force-unlock",
     {},
     "NAME",
     {},
     "end the hold of somebody else",
     "Compares and removes in one step, so that a newer holder never loses the lock; wakes those who wait; prints "
     "whose hold has ended. The holder is not stopped by it: make sure that it does not work any more, or wait one "
     "lease. The exit code is 1 if nobody holds the lock, and 75 if another does.",
     of_force_unlock,
     1,
     1,
     false},
    {"watch",
     {},
     "NAME...",
     {},
     "show what becomes of locks, until a signal",
     "A line for each lock as it is, and one for each change: who holds it now, or that it is free. What happens "
     "within a quarter of a second may be one line.",
     {},
     1,
     -1,
     false},
    {"bench",
     {},
     "",
     {},
     "measure what a free lock costs",
     "Takes and releases locks named latchkey-bench:RANDOM, and says how many pairs a second, and how long the median "
     "and "
     "the slowest hundredth took.",
     of_bench,
     0,
     0,
     false},
    {"doctor",
     {},
     "",
     {},
     "look for what is wrong with a server and the rights there",
     "One line for each check: ok, warn, FAIL or skip, its name, what was found and what helps. Rights are really "
     "used, on locks named latchkey-doctor:RANDOM, which are removed again. What the user may not read is skipped, "
     "unless "
     "--admin-uri-file names one who may. Of a cluster each master is looked at, and every line says which. The exit "
     "code is 1 if a check failed.",
     of_doctor,
     0,
     0,
     false},
    {"completion",
     {},
     "SHELL",
     "bash|zsh|fish",
     "print what a shell reads to complete command lines",
     "For bash, zsh or fish. In the file that bash reads when it starts: source <(latchkey completion bash)",
     {},
     1,
     1,
     false},
};

constexpr variable all_variables[] = {
    {"LATCHKEY_URI", "the server; default redis://127.0.0.1:6379"},
    {"LATCHKEY_URI_FILE", "a file with the URI, which may have a password"},
    {"LATCHKEY_USERNAME", "ACL user, unless the URI names one"},
    {"LATCHKEY_PASSWORD", "password, unless the URI has one"},
    {"LATCHKEY_PASSWORD_FILE", "a file with the password"},
    {"LATCHKEY_TOKEN", "the hold that release, extend and held mean"},
    {"LATCHKEY_CACERT", "as --cacert; also LATCHKEY_CERT and LATCHKEY_KEY"},
    {"CREDENTIALS_DIRECTORY", "systemd's: its file latchkey.uri has the URI if nothing else does"},
    {"NO_COLOR", "no colours on a terminal"},
};

constexpr code_meaning codes[] = {
    {"0, 1", "yes, no"},
    {"any, 128+n", "run: as the command ended, or the signal that ended it"},
    {"64", "wrong usage, or a lock that the caller already holds"},
    {"69", "the server cannot be reached or does not answer"},
    {"70, 71", "a fault of this program; no process could be made"},
    {"75", "still busy when the wait ended; force-unlock: held by another"},
    {"76", "the server refuses: wrong type of key, read only"},
    {"77", "the server refuses the user, the password or a right"},
    {"78", "the URI or a file cannot be used"},
    {"79", "run: the lock was lost, or --max-hold reached"},
    {"126, 127", "run: the command cannot be executed; is not there"},
};

}  // namespace

std::span<option const> common_options() { return common; }
std::span<subcommand const> subcommands() { return all_subcommands; }
std::span<variable const> variables() { return all_variables; }
std::span<code_meaning const> exit_codes() { return codes; }

subcommand const* find_subcommand(std::string_view name) {
  for (auto const& one : all_subcommands)
    if (name == one.name || (!one.other_name.empty() && name == one.other_name)) return &one;
  return nullptr;
}

}  // namespace latchkey::tool
