# Steps for the time that the cores are idle: tests on real servers wait, builds and checks compute. One job does these
# steps in order, at the lowest priority, beside the tests that run meanwhile. Sourced by scripts/test.

in_turn=()
steps_of_jobs=()

expect_step() {
  rm -f "$log_dir/begun-$1".{log,result}
  steps_of_jobs+=("$1")
}

# meanwhile NAME COMMAND...: adds a step; its output goes to build/log/begun-NAME.log.
meanwhile() {
  local name=$1
  shift
  expect_step "$name"
  in_turn+=("$name $(printf '%q ' "$@")")
}

# at_once NAME COMMAND...: a step that has a job of its own, for it waits for a network, or keeps one core busy for long.
at_once() {
  expect_step "$1"
  job do_step "$@"
}

begin_in_turn() { [ ${#in_turn[@]} = 0 ] || job do_in_turn; }

# A job is a process group of its own, so that its children end with it.
jobs_begun=()
job() {
  mkdir -p "$log_dir"
  set -m
  at_leisure "$@" &
  set +m
  jobs_begun+=($!)
}

at_leisure() {
  renice -n 19 -p "$BASHPID" >/dev/null
  "$@"
}

do_step() {
  local name=$1 result=0
  shift
  timed "$@" >"$log_dir/begun-$name.log" 2>&1 </dev/null || result=$?
  echo "$result $spent" >"$log_dir/begun-$name.result.new"
  mv "$log_dir/begun-$name.result.new" "$log_dir/begun-$name.result"
}

do_in_turn() {
  local step
  for step in "${in_turn[@]}"; do eval "do_step $step"; done
}

# begun NAME: waits for the step, prints what it printed and returns its exit code.
begun() {
  local log=$log_dir/begun-$1 result
  until [ -f "$log.result" ]; do
    kill -0 "${jobs_begun[@]}" 2>/dev/null || { echo "nothing does this step: $1"; return 1; }
    sleep 0.2
  done
  read -r result _ <"$log.result"
  cat "$log.log"
  return "$result"
}

# What each of them took that has ended.
times_of_jobs() {
  local name result spent
  for name in "${steps_of_jobs[@]}"; do
    read -r result spent 2>/dev/null <"$log_dir/begun-$name.result" && echo "$spent $name-meanwhile"
  done
}

end_jobs() {
  local one
  for one in "${jobs_begun[@]}"; do kill -- "-$one" 2>/dev/null; done
}
trap end_jobs EXIT
trap 'exit 130' INT TERM
