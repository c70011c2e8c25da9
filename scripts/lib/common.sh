# Shared by the server scripts. Sourced, not run.

# Everything a person reads goes to stderr: stdout stays free for data.
say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

cache=${OUTBOXD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/outboxd}

# need COMMAND PACKAGE...: installs Debian packages when a command is missing. Parts and runs at the same time take turns.
need() {
  local command=$1
  shift
  if command -v "$command" >/dev/null; then return; fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    die "$command is missing, and only root on Debian can install it here: install the package(s) $*, or for servers set the variables that scripts/servers names"
  fi
  mkdir -p "$cache"
  (
    flock 9
    if ! command -v "$command" >/dev/null; then install_packages "$@"; fi
  ) 9>"$cache/apt.lock"
}

install_packages() {
  say "installing $*"
  export DEBIAN_FRONTEND=noninteractive
  if [ ! -e "$folder/apt.log" ]; then apt-get update -qq >&2; fi
  # A package must not start its server: we start our own, on our own port.
  local hook=() code=0
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    hook=(/usr/sbin/policy-rc.d)
    printf '#!/bin/sh\nexit 101\n' >"${hook[@]}"
    chmod +x "${hook[@]}"
  fi
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >>"$folder/apt.log" 2>&1 || code=$?
  if [ ${#hook[@]} -gt 0 ]; then rm -f "${hook[@]}"; fi
  if [ "$code" != 0 ]; then
    tail -n 20 "$folder/apt.log" >&2
    die "apt-get could not install $*"
  fi
}

# fetched NAME COMMAND...: sets $home to $cache/NAME. The command fills a folder, its last argument, which gets that name
# when all is in it; so what is there is whole, and a run at the same time waits for it.
fetched() {
  home=$cache/$1
  shift
  mkdir -p "$cache"
  (
    flock 9
    if [ -e "$home" ]; then exit; fi
    rm -rf "$home.part"
    mkdir "$home.part"
    "$@" "$home.part"
    mv "$home.part" "$home"
  ) 9>"$home.lock"
}

# free_port: sets $port to a port that nothing listens on and that this run has
# not given away yet. The range lies below the one for outgoing connections.
free_port() {
  mkdir -p "$folder/ports"
  while :; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if ! port_answers "$port" && mkdir "$folder/ports/$port" 2>/dev/null; then return; fi
  done
}

port_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# What a command begins with that refuses root: PostgreSQL's and pgbouncer do.
as_server=()
if [ "$(id -u)" = 0 ]; then as_server=(setpriv --reuid=postgres --regid=postgres --init-groups); fi

# server_folder NAME: makes a folder that the server's user may write, in $dir.
server_folder() {
  dir=$folder/$1
  mkdir -p "$dir"
  if [ "$(id -u)" = 0 ]; then chown postgres: "$dir"; fi
}

# run_file COMMAND...: makes $dir/run, which becomes that command, with its own arguments behind it.
run_file() {
  printf '#!/bin/bash\nexec%s "$@"\n' "$(printf ' %q' "$@")" >"$dir/run"
  chmod +x "$dir/run"
}

# wait_for NAME PID LOG COMMAND...: until the command succeeds, or the server ended.
wait_for() {
  local name=$1 pid=$2 log=$3 tries=0
  shift 3
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if ! kill -0 "$pid" 2>/dev/null || [ $tries -gt 600 ]; then
      tail -n 30 "$log" >&2
      die "$name did not start; its log is above"
    fi
    sleep 0.1
  done
}

# export_var NAME VALUE: a line of the environment file.
export_var() { printf 'export %s=%q\n' "$1" "$2" >>"$folder/env"; }

# version TEXT: a line for the report at the start and the end of a run.
version() { printf '%s\n' "$*" >>"$folder/versions"; }
