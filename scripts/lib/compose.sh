# The same servers from a container engine. Sourced, not run.

compose_file=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/docker-compose.test.yml

# engine_answers: a client alone is not enough, the engine behind it has to answer.
engine_answers() {
  command -v docker >/dev/null && docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1
}

# compose ARGUMENT...: the ports and the folder travel in the environment, see docker-compose.test.yml.
compose() {
  # shellcheck source=/dev/null
  (. "$folder/compose.env" && exec docker compose -p "$(basename "$folder" | tr 'A-Z.' 'a-z-')" -f "$compose_file" \
    --profile "*" "$@")
}

up_compose() {
  local services=()
  export_port OUTBOXD_TEST_FOLDER "$folder"
  for port_name in POSTGRES PGBOUNCER POSTGRES18 PGBOUNCER18 MYSQL MARIADB KAFKA; do
    free_port
    export_port "OUTBOXD_TEST_${port_name}_PORT" "$port"
  done
  # shellcheck source=/dev/null
  . "$folder/compose.env"
  pgbouncer_config 0.0.0.0 6432 postgres 5432 /etc/outboxd >"$folder/pgbouncer.ini"
  pgbouncer_config 0.0.0.0 6432 postgres18 5432 /etc/outboxd >"$folder/pgbouncer18.ini"
  echo '"postgres" ""' >"$folder/users.txt"

  if wanted OUTBOXD_TEST_POSTGRES_URL; then
    services+=(postgres)
    compose_url OUTBOXD_TEST_POSTGRES_URL "$OUTBOXD_TEST_POSTGRES_PORT"
    if wanted OUTBOXD_TEST_PGBOUNCER_URL; then
      services+=(pgbouncer)
      compose_url OUTBOXD_TEST_PGBOUNCER_URL "$OUTBOXD_TEST_PGBOUNCER_PORT"
    fi
  fi
  if [ "$full" = yes ] && wanted OUTBOXD_TEST_POSTGRES18_URL; then
    services+=(postgres18 pgbouncer18)
    compose_url OUTBOXD_TEST_POSTGRES18_URL "$OUTBOXD_TEST_POSTGRES18_PORT"
    compose_url OUTBOXD_TEST_PGBOUNCER18_URL "$OUTBOXD_TEST_PGBOUNCER18_PORT"
  fi
  if wanted OUTBOXD_TEST_MYSQL_URL; then
    services+=(mysql)
    export_var OUTBOXD_TEST_MYSQL_URL "$(mysql_url "$OUTBOXD_TEST_MYSQL_PORT")"
  fi
  if wanted OUTBOXD_TEST_MARIADB_URL; then
    services+=(mariadb)
    export_var OUTBOXD_TEST_MARIADB_URL "$(mysql_url "$OUTBOXD_TEST_MARIADB_PORT")"
  fi
  if wanted OUTBOXD_TEST_KAFKA_BROKERS; then
    services+=(kafka)
    export_var OUTBOXD_TEST_KAFKA_BROKERS "127.0.0.1:$OUTBOXD_TEST_KAFKA_PORT"
  fi
  if [ ${#services[@]} = 0 ]; then return; fi
  compose up --detach --wait "${services[@]}" >&2 || { compose logs >&2; down_compose; die 'the containers did not start; their logs are above'; }
  compose_versions "${services[@]}"
}

export_port() { printf 'export %s=%q\n' "$1" "$2" >>"$folder/compose.env"; }
compose_url() { export_var "$1" "postgres://postgres@127.0.0.1:$2/postgres?sslmode=disable"; }

compose_versions() {
  local service
  for service in "$@"; do
    case $service in
    postgres*) version "PostgreSQL $(compose exec -T "$service" psql -U postgres -X -At -c 'SHOW server_version')" ;;
    pgbouncer*) version "$(compose exec -T "$service" pgbouncer --version | head -n 1), transaction mode" ;;
    mysql) version "$(compose exec -T mysql mysqld --version | product)" ;;
    mariadb) version "$(compose exec -T mariadb mariadbd --version | product)" ;;
    kafka) version "Apache Kafka $(compose exec -T kafka /opt/kafka/bin/kafka-topics.sh --version | cut -d ' ' -f 1)" ;;
    esac
  done
}

down_compose() {
  if [ -e "$folder/compose.env" ]; then compose down --volumes --timeout 5 >&2 || true; fi
}
