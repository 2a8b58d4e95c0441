# The groups of tests: what each is, what it needs, how it runs. Sourced by scripts/test.

declare -A about=(
  [unit]="codec, wire format and machines, in virtual time; needs no server"
  [compile]="floors, headers alone, what must not compile, cost of including, sizes of classes and functions"
  [docs]="the code in README.md and docs/ is the code of compiled files"
  [package]="programs that find the library by find_package, add_subdirectory and pkg-config"
  [packages]="what packages promise: BUILD_TESTING, components, the Boost guard, Debian packages in a bare root, releases"
  [site]="the site is built, offline, by two programs, and a browser finds nothing wrong with any page; needs chromium"
  [server]="the library against real Redis servers, started on private sockets"
  [topologies]="sentinels, clusters, failovers, TLS: the cases of docs/topology-cases.md, but the one that needs Java (interop)"
  [servers]="server, outside and topologies on Redis 6.2 and 8.2 and Valkey 9.1, fetched into build/servers"
  [outside]="programs on public headers alone: what they are told beside what a second client and redis-cli see"
  [testing]="latchkey::testing: time, losses and faults as a test orders them; test/server against it; T1 to T5 by number"
  [tools]="the program latchkey: options, exit codes, what happens to a command when something dies, a terminal"
  [costs]="commands, system calls, allocations, wake-ups and bytes of an operation have not risen"
  [example]="the programs in examples/"
  [demo]="a short run of the flash sale"
  [interop]="latchkey beside Redisson, redis-py, redsync and redlock on the same locks, both ways; prints a table"
  [stress]="many callers, executors, killed connections and early ends at once, against real servers"
  [simulate]="whole clients against a modelled server in virtual time: 12,000 seeds; the model beside a real server; faults on purpose"
  [torture]="real processes on real servers with every nemesis for half a minute, and six failovers of each topology; the checker; workers that break the rule"
  [mutants]="eight cures taken out of the sources, one at a time: a test notices each"
  [clang]="Clang 14 warns of no file, each alone; beside asan-ubsan, of those that it does not compile there"
  [asan-ubsan]="unit, server, outside, stress and testing tests by Clang 14 under AddressSanitizer and UndefinedBehaviorSanitizer"
  [tsan]="server, outside, stress and testing tests under ThreadSanitizer; unit tests have one thread"
  [fuzz]="libFuzzer on replies, their meanings, URIs, the machines and command lines: 4 s each"
  [format]="clang-format would change nothing"
  [tidy]="clang-tidy has no remark on lib/"
  [model]="the small models of the locking algorithm"
  [bench]="a short run of the benchmark prints its figures; scripts/bench judges them, on a machine with nothing else to do"
)
# What is slow has a short form, which CI runs, and with --long this.
declare -A long_form=(
  [outside]="every combination of two takings and two endings, and not a third of them"
  [interop]="20,000 turns of two processes of each library under one lock, and not 6,000"
  [packages]="packages as for a release: optimised, the Conan package built and used, this tree built twice and compared"
  [testing]="every test of test/server beside the double, and not a choice of them"
  [simulate]="and 200,000 seeds more"
  [torture]="and ten minutes of all nemeses, and 200 failovers of each topology"
  [mutants]="every mutant: an hour or two"
  [asan-ubsan]="sweeps of unit tests at every fourth step, and not at every twelfth"
  [fuzz]="a minute for every target"
  [model]="every model: four minutes of a core"
  [bench]="every row"
)
long=no

# either SHORT LONG: one of them.
either() { if [ $long = yes ]; then echo "$2"; else echo "$1"; fi; }

# In the order in which they run: what waits for servers comes first, beside what computes (meanwhile.sh); then what computes
# while the last build ends, and what waits for what was begun; what wants the machine for itself comes last.
all_groups=(
  unit docs server outside testing tools example site stress topologies interop tsan mutants simulate format asan-ubsan
  packages demo clang compile package model torture costs fuzz bench
)
# What of them computes beside the others, in this order: packages keep little more than one core busy, and the tests of
# asan-ubsan leave one; fuzzing leaves the torture room.
meanwhile_groups=(asan-ubsan packages demo clang bench compile package model fuzz)
quick_groups=(unit docs server outside testing tools example demo compile package costs)
# Not part of --all: ten minutes more; and remarks that have not all been worked through.
named_groups=(servers tidy)

# The preset of the quick groups; with --all it is the one in which a warning is an error.
main_preset=test

list_groups() {
  local group
  echo "Run by default:"
  for group in "${quick_groups[@]}"; do tell_group "$group"; done
  echo "Run by --all, or by name:"
  for group in "${all_groups[@]}"; do
    case " ${quick_groups[*]} " in *" $group "*) ;; *) tell_group "$group" ;; esac
  done
  echo "Run by name only:"
  for group in "${named_groups[@]}"; do tell_group "$group"; done
}

tell_group() {
  printf '  %-12s%s\n' "$1" "${about[$1]}"
  [ -z "${long_form[$1]:-}" ] || printf '  %-12s--long: %s\n' "" "${long_form[$1]}"
}

preset_of() {
  case $1 in
    asan-ubsan | tsan) echo "$1" ;;
    # Its library is compiled as for mutants: there is nothing more to build.
    mutants) [ "$main_preset" != ci ] || echo ci ;;
    tidy) echo clang ;;
    clang | fuzz | format | model | bench) ;;
    *) echo "$main_preset" ;;
  esac
}

# What a group needs built; "configure" stands for nothing but the files that CMake writes.
targets_of() {
  case $1 in
    unit) echo latchkey_unit_tests ;;
    server) echo latchkey_server_tests latchkey_replay_tests latchkey_sweeps_tests ;;
    servers) targets_of server; targets_of outside; echo latchkey_topologies_tests ;;
    topologies) echo latchkey_topologies_tests latchkey_unit_tests latchkey_server_tests ;;
    stress | interop | costs | outside) echo "latchkey_$1_tests" ;;
    simulate) echo latchkey_simulate latchkey_simulation_tests latchkey_truth_tests ;;
    testing) echo latchkey_testing_tests latchkey_double latchkey_server_tests ;;
    torture) echo latchkey_torture latchkey_checker_tests ;;
    mutants) echo latchkey_unit_tests latchkey_simulate ;;
    compile) echo latchkey_compile_tests ;;
    package) echo latchkey latchkey_tool ;;
    tools | site) echo latchkey_tool ;;
    example | demo) echo latchkey_examples ;;
    asan-ubsan) echo latchkey_unit_tests "$(targets_of tsan)" ;;
    tsan)
      echo latchkey_server_tests latchkey_sweeps_tests latchkey_outside_tests latchkey_stress_tests latchkey_testing_tests
      ;;
    docs | tidy | packages) echo configure ;;
  esac
}

packages_of() {
  case $1 in
    format) echo clang-format-14 ;;
    tidy) echo "${packages_build[@]}" "${packages_test[@]}" clang-14 clang-tidy-14 ;;
    clang) echo "${packages_build[@]}" "${packages_test[@]}" clang-14 ;;
    asan-ubsan) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_server[@]}" "${packages_fuzz[@]}" ;;
    fuzz) echo "${packages_build[@]}" "${packages_fuzz[@]}" ;;
    unit | compile | package | mutants) echo "${packages_build[@]}" "${packages_test[@]}" ;;
    packages) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_server[@]}" "${packages_packages[@]}" ;;
    model) echo g++ python3 ;;
    site) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_site[@]}" "${packages_browser[@]}" ;;
    servers) echo "$(packages_of outside)" python3-venv ;;
    docs) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_contrib[@]}" ;;
    outside) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_server[@]}" "${packages_contrib[@]}" ;;
    example | demo) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_server[@]}" "${packages_example[@]}" ;;
    interop)
      echo "${packages_build[@]}" "${packages_test[@]}" "${packages_server[@]}" "${packages_interop[@]}" $(toolchains)
      ;;
    *) echo "${packages_build[@]}" "${packages_test[@]}" "${packages_server[@]}" ;;
  esac
}

install_for() {
  local group packages=()
  for group in "$@"; do
    read -ra more <<<"$(packages_of "$group")"
    packages+=("${more[@]}")
  done
  mapfile -t packages < <(printf '%s\n' "${packages[@]}" | awk '!seen[$0]++')
  need "${packages[@]}"
}

# One build for each preset, of all the targets that the groups need from it. A group whose build failed fails.
declare -A broken=()
build_for() {
  local preset
  build "$main_preset" "$(built_for "$main_preset" "$@")" || broken[$main_preset]=yes
  for preset in tsan asan-ubsan; do
    targets=$(built_for "$preset" "$@")
    [ -z "$targets" ] || meanwhile "$preset-build" build "$preset" "$targets"
  done
}

# built_for PRESET GROUP...: the targets of these groups.
built_for() {
  local preset=$1 group
  shift
  for group in "$@"; do
    [ "$(preset_of "$group")" != "$preset" ] || targets_of "$group"
  done | tr ' ' '\n' | sort -u | xargs
}

# build PRESET TARGETS
build() {
  local targets
  [ -n "$2" ] || return 0
  run_step "$1-configure" "configuring ($1)" cmake --preset "$1" || return
  targets=$(tr ' ' '\n' <<<"$2" | grep -vx configure | xargs)
  [ -n "$targets" ] || return 0
  # shellcheck disable=SC2086
  run_step "$1-build" "building $targets ($1)" cmake --build "build/$1" --parallel "$(nproc)" --target $targets
}

# What computes and does not mind how long it takes.
queue_for() {
  local group
  for group in "${meanwhile_groups[@]}"; do
    case " $* " in *" $group "*) ;; *) continue ;; esac
    case $group in
      asan-ubsan) meanwhile asan-ubsan-unit ctest_of asan-ubsan unit unit ;;
      clang)
        case " $* " in
          *" asan-ubsan "*) meanwhile clang check_by_clang --built-in build/asan-ubsan ;;
          *) meanwhile clang check_by_clang ;;
        esac
        ;;
      compile | package | packages) meanwhile "$main_preset-$group" ctest_of "$main_preset" "$group" "$group" ;;
      fuzz) meanwhile fuzz scripts/fuzz --seconds "$(either 4 60)" --jobs 5 all ;;
      # shellcheck disable=SC2046
      model) meanwhile model timeout 1800 test/model/run $(either --small "") ;;
      demo) [ "$main_preset" != ci ] || meanwhile demo-script scripts/demo --help ;;
      bench) meanwhile bench-build scripts/bench --build ;;
    esac
  done
}

run_group() {
  local preset
  preset=$(preset_of "$1")
  if [ -n "$preset" ] && ! built "$preset"; then
    say "$1: FAILED, because the build failed"
    failed=$((failed + 1))
    failures+=("$1, whose build failed")
    return
  fi
  case $1 in
    clang) check clang "waiting for the look of Clang at every file" begun clang ;;
    asan-ubsan)
      run_ctest "$1" "$1" 'server|outside|stress|testing'
      judge_begun "$1" unit
      ;;
    tsan) run_ctest "$1" "$1" 'server|outside|stress|testing' ;;
    compile | package | packages) judge_begun "$main_preset" "$1" ;;
    format) check format "checking the format" check_format ;;
    tidy) check tidy "running clang-tidy on lib/" run_tidy ;;
    mutants) check mutants "taking $(either eight all) cures out, one at a time" run_mutants ;;
    fuzz) check fuzz "waiting for $(either "4 s" "a minute") of fuzzing of every target" begun fuzz ;;
    model) check model "waiting for the check of the model" begun model ;;
    server) run_ctest "$main_preset" server 'server|replay' ;;
    topologies) run_ctest "$main_preset" topologies "$(labels_of_topologies)" ;;
    interop) run_interop ;;
    servers) run_servers ;;
    bench)
      check bench-built "waiting for the build of the benchmark" begun bench-build || return
      check bench "measuring acquire and release beside a bare client" run_bench
      ;;
    demo)
      run_ctest "$main_preset" demo demo
      # What a newcomer types first builds in its own way.
      [ "$main_preset" != ci ] || check demo-script "waiting for the build of scripts/demo" begun demo-script
      ;;
    *) run_ctest "$main_preset" "$1" "$1" ;;
  esac
  [ $long = no ] || run_long "$1"
}

# Its cases that need one server, or none, are among the tests of other groups, which run them if they run.
labels_of_topologies() {
  local group labels=topologies
  for group in unit server; do
    case " ${groups[*]} " in *" $group "*) ;; *) labels+="|${group}_topologies" ;; esac
  done
  echo "$labels"
}

# What --long adds to a group.
run_long() {
  case $1 in
    simulate) check simulate-long "simulating 200,000 seeds" scripts/simulate --seeds 200000 ;;
    torture)
      check torture-long "torturing one server for ten minutes" scripts/torture --minutes 10
      local topology
      for topology in sentinel cluster; do
        check "torture-$topology-long" "200 failovers ($topology)" \
          scripts/torture --topology $topology --sets 2 --failovers 200 --minutes 30
      done
      ;;
  esac
}

# built PRESET: waits for a build that was begun.
built() {
  case $1 in
    "$main_preset") ;;
    *)
      [ -n "${broken[$1]:-}" ] ||
        run_step "$1-awaited" "waiting for the build of $1" begun "$1-build" || broken[$1]=yes
      ;;
  esac
  [ -z "${broken[$1]:-}" ]
}

# Each beside Debian's Redis 7.0, which is what the other groups start.
run_servers() {
  local folder=$PWD/build/servers name usual=$PATH left_out said
  check servers-fetch "fetching other servers" test/servers/fetch "$folder" || return
  for name in redis-6.2 redis-8.2 valkey-9.1; do
    PATH=$folder/$name:$usual
    left_out=
    # Without a certificate it ends at once, whatever it was built with.
    said=$(timeout 5 redis-server --port 0 --tls-port 1 --bind 127.0.0.1 2>&1)
    if grep -qE 'Bad directive|Missing implement' <<<"$said"; then
      left_out='^(server\.tls_|topologies\.topology_tls_)'
      say "$name was built without TLS: its tests are left out"
    fi
    run_ctest "$main_preset" "servers-$name" 'server|replay|outside|topologies' "$left_out"
  done
  PATH=$usual
}

# run_ctest PRESET NAME LABELS [LEFT_OUT]
run_ctest() {
  local result=0
  say "running: $2 ($1)"
  timed ctest_of "$@" || result=$?
  took+=("$spent $1-$2")
  judge "$1" "$2" $result
}

# judge_begun PRESET NAME: of tests that run already.
judge_begun() {
  local result=0
  say "waiting for: $2 ($1)"
  begun "$1-$2" >/dev/null || result=$?
  judge "$1" "$2" $result
}

# ctest_of PRESET NAME LABELS [LEFT_OUT]: its results go to build/log/PRESET-NAME.xml, its words to .log.
ctest_of() {
  local log=$log_dir/$1-$2 wrapper=() jobs
  jobs=$(nproc)
  mkdir -p "$log_dir"
  rm -f "$log.xml" "$log.txt"
  # ThreadSanitizer of GCC 12 gives up where addresses are spread too widely.
  if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then wrapper=(setarch -R); fi
  # Nor does every process that ends wait a second for what may still race.
  export TSAN_OPTIONS="suppressions=$PWD/test/support/tsan.supp atexit_sleep_ms=0"
  # Fewer frames of an allocation and less freed memory are kept than usual: a third of the time.
  export ASAN_OPTIONS=malloc_context_size=5:quarantine_size_mb=16
  # A whole client that leaks would fill the report with its parts.
  export LSAN_OPTIONS=max_leaks=12
  # Tests on a real server wait more than they compute.
  case $2 in
    server | outside | tools | testing | interop | servers-*) jobs=$((jobs * 2)) ;;
    asan-ubsan | tsan) jobs=$((jobs * 3)) ;;
    topologies) jobs=$((jobs + 1)) ;;
  esac
  "${wrapper[@]}" ctest --test-dir "build/$1" -L "^($3)\$" ${4:+-E "$4"} --no-tests=error --output-on-failure \
    --parallel "$jobs" --test-output-size-passed 100000 --test-output-size-failed 100000 \
    --output-junit "$PWD/$log.xml" >"$log.log" 2>&1 </dev/null
}

# judge PRESET NAME RESULT: counts what ctest_of left, and shows what failed.
judge() {
  local log=$log_dir/$1-$2 counts good bad test
  counts=$(python3 scripts/lib/results.py "$log.xml" "$log.txt" 2>>"$log.log") || counts="0 1"
  read -r good bad <<<"$counts"
  # Nothing found wrong in what was run, but not everything was run.
  if [ "$bad" = 0 ] && { [ "$good" = 0 ] || [ "$3" != 0 ]; }; then bad=1; fi
  passed=$((passed + good))
  failed=$((failed + bad))
  if [ "$bad" = 0 ]; then
    say "    $good passed"
  else
    say "    $good passed, $bad FAILED"
    while read -r test; do failures+=("$2 ($1): $test"); done < <(sed -n 's/^--- \(.*\) ---$/\1/p' "$log.txt")
    [ -s "$log.txt" ] || failures+=("$2 ($1)")
    if [ -s "$log.txt" ]; then cat "$log.txt"; else tail -n 20 "$log.log"; fi
    echo "        the whole output: $log.log"
  fi
}

# The drivers in other languages take as long to fetch as to compile: beside the C++ compiler.
begin_interop() {
  say "building the drivers of Redisson, redis-py, redsync and redlock meanwhile"
  at_once interop-driver test/interop/build-driver
  at_once interop-peers test/interop/build-peers
}

# The tests fill the cells of a table; one that stayed empty is a failure too.
run_interop() {
  export LATCHKEY_INTEROP_CELLS=$PWD/$log_dir/interop
  rm -rf "$LATCHKEY_INTEROP_CELLS"
  mkdir -p "$LATCHKEY_INTEROP_CELLS"
  check interop-driver "waiting for the driver of Redisson" begun interop-driver || return
  check interop-peers "waiting for those of redis-py, redsync and redlock" begun interop-peers || return
  run_ctest "$main_preset" interop interop
  check interop-table "putting the table together" python3 test/interop/table.py "$LATCHKEY_INTEROP_CELLS"
  cat "$log_dir/interop-table.log"
}

# A missed gate (exit code 1) is a figure here and no failure: a machine that is busy with something else misses it too.
# A row that could not be measured is one.
run_bench() {
  local result=0
  rm -f "$log_dir/bench.json"
  # shellcheck disable=SC2046
  timeout "$(either 900 10800)" scripts/bench $(either "--only pair --only tls --only first_lock --only network --rounds 2" "") \
    --json "$log_dir/bench.json" || result=$?
  [ $result -le 1 ] && [ -s "$log_dir/bench.json" ] && python3 - "$log_dir/bench.json" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1], encoding="utf-8"))["rows"]
missing = [row for row in rows if row["missing"] not in ("", "scripts/bench peers")]
for row in missing: print(f"FAILED: {row['group']}, {row['name']}: {row['missing']}")
sys.exit(bool(missing))
PYTHON
}

run_mutants() {
  local build=()
  [ "$main_preset" != ci ] || build=(--build build/ci --unchecked)
  # shellcheck disable=SC2046
  scripts/mutants $(either --quick "") "${build[@]}"
}

sources() { find include lib tools testing test bench examples \( -name '*.hpp' -o -name '*.cpp' \) -print0; }

check_by_clang() { cmake --preset clang && python3 scripts/lib/check_sources.py build/clang "$@"; }

check_format() { sources | xargs -0 clang-format-14 --dry-run --Werror; }

run_tidy() { find lib -name '*.cpp' -print0 | xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 -p build/clang --quiet; }
