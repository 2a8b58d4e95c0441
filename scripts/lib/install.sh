# need PACKAGE...: installs the Debian packages that are missing. Exit code 3, and the command to type, if that is not
# possible.
need() {
  [ "$(id -u)" != 0 ] || sweep_policy
  local missing=() package
  for package in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local command="apt-get install -y --no-install-recommends ${missing[*]}"
  if ! command -v apt-get >/dev/null; then
    echo "This script knows how to install packages on Debian only. Missing, by their Debian names: ${missing[*]}" >&2
    exit 3
  fi
  if [ "$(id -u)" != 0 ]; then
    echo "Some packages are missing, and only root may install them. Please run:" >&2
    echo "  sudo apt-get update && sudo $command" >&2
    exit 3
  fi

  export DEBIAN_FRONTEND=noninteractive
  run_step apt-update "updating the package lists" apt-get update || exit 3
  # shellcheck disable=SC2086
  run_step apt-install "installing: ${missing[*]}" without_services $command || exit 3
}

# Installing redis-server would also start a service on port 6379, which nobody asked for: tests and demo start
# servers of their own on private sockets. A policy-rc.d that says no, for the time of the installation, prevents it.
policy=/usr/sbin/policy-rc.d
policy_mark='# by latchkey, for the time of an installation by process'

# since PID: when a process began, in ticks since the system did; its number alone may be another's by now.
since() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# A script that was killed by SIGKILL could not remove its policy, and no service would start any more.
sweep_policy() {
  local owner began
  read -r owner began < <(sed -n "s/^$policy_mark //p" "$policy" 2>/dev/null) || return 0
  if [ -n "$began" ] && [ "$(since "$owner")" != "$began" ]; then rm -f "$policy"; fi
}

without_services() {
  sweep_policy
  if [ -e "$policy" ]; then
    "$@"
    return
  fi
  local number result=0 me=$BASHPID
  # An untrapped signal would end the shell only when the installation has ended. That ends first here, too: what it
  # still configures must find the policy.
  for number in 1 2 15; do
    # shellcheck disable=SC2064
    trap "kill -TERM \${!:-} 2>/dev/null; wait \${!:-}; rm -f '$policy'; trap - EXIT $number; kill -$number $me" $number
  done
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\n%s %s %s\nexit 101\n' "$policy_mark" "$me" "$(since "$me")" >"$policy"
  chmod 755 "$policy"
  "$@" &
  wait "$!" || result=$?
  rm -f "$policy"
  trap - EXIT 1 2 15
  return $result
}

# What it takes to build the library, and to run a server.
packages_build=(g++ cmake ninja-build pkg-config libboost1.81-dev libboost-program-options1.81-dev libhiredis-dev
  libssl-dev)
packages_server=(redis-server openssl)
packages_test=(catch2 liblua5.1-0-dev libsqlite3-dev python3 universal-ctags groff-base)
packages_interop=(default-jdk-headless maven)
packages_packages=(dpkg-dev debhelper fakeroot git lintian mmdebstrap abigail-tools python3-venv)
packages_contrib=(prometheus)  # promtool
packages_example=(libspdlog-dev)
packages_site=(doxygen python3-venv)
packages_browser=(chromium)  # looks at the site
packages_bench=(python3)
packages_plot=(python3-matplotlib)  # draws what scripts/bench measured
packages_clang=(clang-14)
# libFuzzer and the sanitizers of Clang; its tools show names instead of addresses.
packages_fuzz=(clang-14 libclang-rt-14-dev llvm-14)
packages_format=(clang-format-14)
packages_tidy=(clang-tidy-14)

# Packages for the toolchains of other languages that the machine has not: one of its own will do.
toolchains() {
  command -v go >/dev/null || echo golang-go
  command -v node >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}
