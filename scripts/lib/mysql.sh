# MySQL, from Debian's unstable release, and MariaDB, from the one that runs here. Sourced, not run.

# debian_mirror: where this machine gets its Debian packages from.
debian_mirror() {
  local found
  # shellcheck source=/dev/null
  found=$(. /etc/os-release && apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Identifier: Packages' |
    awk -v release="${VERSION_CODENAME:-}" '$1 == release { print $2; exit }')
  echo "${found:-http://deb.debian.org/debian}"
}

# fetch_mysql FOLDER: the server and every library it uses, down to the loader, unpacked and not installed. It runs
# beside the libraries of this machine; it needs no chroot and no mount.
fetch_mysql() {
  need debootstrap debootstrap
  say 'fetching MySQL'
  local packages=$folder/mysql-packages package
  debootstrap --download-only --variant=minbase --include=mysql-server-core sid "$packages" "$(debian_mirror)" \
    >"$folder/debootstrap.log" 2>&1 ||
    { tail -n 20 "$folder/debootstrap.log" >&2; die 'debootstrap could not fetch MySQL; its log is above'; }
  for package in "$packages"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$1"; done
  rm -rf "$packages"
}

# What the tests ask of both: many connections, and the clients of 127.0.0.1 only. Everything else is the server's default.
mysql_options() {
  options=(--user="$(id -un)" --datadir="$dir/data" --tmpdir="$dir" --socket="$dir/socket" --pid-file="$dir/pid"
    --port="$port" --bind-address=127.0.0.1 --max-connections=500)
}

# prepare_mysql NAME: data in $dir, and $dir/run, which is the server at $url until it is ended.
prepare_mysql() {
  fetched mysql-sid fetch_mysql
  local libraries=("$home"/usr/lib/*-linux-gnu) options mysqld
  mysqld=("${libraries[0]}"/ld-linux-*.so.* --library-path "${libraries[0]}" "$home/usr/sbin/mysqld"
    --no-defaults --basedir="$home/usr" --mysqlx=OFF --secure-file-priv=NULL)
  data_folder "$1"
  mysql_options
  "${mysqld[@]}" "${options[@]}" --initialize-insecure >"$dir.log" 2>&1 ||
    { tail -n 30 "$dir.log" >&2; die "$1: no data folder could be made; its log is above"; }
  run_file "${mysqld[@]}" "${options[@]}"
}

# prepare_mariadb NAME: the same.
prepare_mariadb() {
  need mariadbd mariadb-server-core mariadb-client-core
  local options
  data_folder "$1"
  mysql_options
  # In a folder of its own for temporary tables, since a server that starts clears that folder of all that look like its own.
  TMPDIR=$dir mariadb-install-db --no-defaults --skip-name-resolve --user="$(id -un)" --datadir="$dir/data" --auth-root-authentication-method=normal \
    --skip-test-db >"$dir.log" 2>&1 ||
    { tail -n 30 "$dir.log" >&2; die "$1: no data folder could be made; its log is above"; }
  # MySQL has a binary log, of rows, from the start.
  run_file mariadbd --no-defaults "${options[@]}" --log-bin="$dir/data/binlog" --binlog-format=ROW --server-id=1
}

# data_folder NAME: sets $dir, $port and $url of a new server.
data_folder() {
  dir=$folder/$1
  mkdir -p "$dir"
  free_port
  url=$(mysql_url "$port")
}

mysql_url() { echo "mysql://root@127.0.0.1:$1/"; }

# product: name and version in what a server says of itself: mysqld  Ver 9.7.4-2 for Linux.
product() { sed -e 's/.* Ver \([0-9.]*\)-MariaDB.*/MariaDB \1/' -e 's/.* Ver \([0-9.]*\).*/MySQL \1/'; }

# up_mysql mysql|mariadb VARIABLE
up_mysql() {
  "prepare_$1" "$1"
  "$dir/run" </dev/null >>"$dir.log" 2>&1 &
  wait_for "$1" $! "$dir.log" port_answers "$port"
  export_var "$2" "$url"
  version "$("$dir/run" --version | product)"
}
