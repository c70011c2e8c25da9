# pgbouncer in transaction mode, in front of a PostgreSQL. Sourced, not run.

# pgbouncer_config LISTEN_ADDRESS LISTEN_PORT SERVER_HOST SERVER_PORT FOLDER: on stdout. The parameters let through are
# those that lib/pq sends by itself; auth_query lets the roles in that the tests make.
pgbouncer_config() {
  cat <<INI
[databases]
* = host=$3 port=$4
[pgbouncer]
listen_addr = $1
listen_port = $2
unix_socket_dir =
auth_type = trust
auth_file = $5/users.txt
auth_user = postgres
admin_users = postgres
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_idle_timeout = 10
ignore_startup_parameters = extra_float_digits
INI
}

pgbouncer_version() {
  version "$(psql -X -At "postgres://postgres@127.0.0.1:$1/pgbouncer?sslmode=disable" -c 'SHOW VERSION'), transaction mode"
}

# up_pgbouncer NAME VARIABLE POSTGRES_PORT
up_pgbouncer() {
  local name=$1 variable=$2 server=$3
  need pgbouncer pgbouncer
  server_folder "$name"
  free_port
  pgbouncer_config 127.0.0.1 "$port" 127.0.0.1 "$server" "$dir" >"$dir/pgbouncer.ini"
  echo '"postgres" ""' >"$dir/users.txt"
  "${as_server[@]}" pgbouncer "$dir/pgbouncer.ini" </dev/null >"$dir.log" 2>&1 &
  local url="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
  wait_for "$name" $! "$dir.log" psql -X "$url" -c 'SELECT 1'
  export_var "$variable" "$url"
  pgbouncer_version "$port"
}
