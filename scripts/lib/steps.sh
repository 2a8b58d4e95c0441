# Progress on the screen: one line per step, its long output in a log file. Sourced by the scripts beside this folder.

log_dir=${log_dir:-build/log}
passed=0
failed=0
failures=()
took=()

# elapsed: time since the script began, for the front of a line.
elapsed() { printf '[%2d:%02d]' $((SECONDS / 60)) $((SECONDS % 60)); }

say() { echo "$(elapsed) $*"; }

# timed COMMAND...: leaves in `spent` the seconds that it took, and those that cores computed for it. In a shell of its
# own: to a shell that has jobs counts what they took, too, once they have ended.
timed() {
  local result=0 file real user system TIMEFORMAT='%0R %0U %0S'
  file=$(mktemp)
  (time "$@" 2>&3) 3>&2 2>"$file" || result=$?
  read -r real user system <"$file"
  rm -f "$file"
  spent="$real $((user + system))"
  return $result
}

# run_step LOG TEXT COMMAND...: runs the command with its output in build/log/LOG.log; on failure shows the end of it.
run_step() {
  local log=$log_dir/$1.log text=$2 began=$SECONDS
  shift 2
  mkdir -p "$log_dir"
  say "$text"
  if timed "$@" >"$log" 2>&1 </dev/null; then
    took+=("$spent $(basename "$log" .log)")
    return 0
  fi
  say "FAILED after $((SECONDS - began)) s: $text"
  failure_lines "$log"
  echo "        the whole output: $log"
  return 1
}

# failure_lines LOG: the part of a build log that says what is wrong, else its end.
failure_lines() {
  local errors
  errors=$(grep -nE '(error:|CMake Error|FAILED:|undefined reference)' "$1" | head -n 20)
  if [ -n "$errors" ]; then
    sed 's/^/        /' <<<"$errors"
  else
    tail -n 40 "$1" | sed 's/^/        /'
  fi
}

# check LOG TEXT COMMAND...: a step that counts as one test.
check() {
  if run_step "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failures+=("$1")
    return 1
  fi
}

# What each step took, the longest first.
say_times() {
  { printf '%s\n' "${took[@]}"; times_of_jobs; } | sort -rn | awk '
    NF { printf "%s%s %d:%02d", n++ ? ", " : "", $3, $1 / 60, $1 % 60 }
    $2 > 0 { printf " (%d:%02d)", $2 / 60, $2 % 60 }
    END { if (n) print " minutes (and of a core)" }'
}

# The last lines are what is kept of a long output: each failure stands there again, by its name.
say_result() {
  local failure
  for failure in "${failures[@]}"; do echo "failed: $failure"; done
  echo "$passed passed, $failed failed"
}
