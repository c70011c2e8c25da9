# promtool, which checks alert rules, out of Debian's package for Prometheus: it needs nothing of what else that brings.
# Sourced, not run.

fetch_promtool() {
  command -v apt-get >/dev/null || die 'promtool is missing: install Prometheus, which brings it'
  say 'fetching promtool'
  (
    cd "$1" &&
      { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } &&
      dpkg-deb --extract prometheus_*.deb . &&
      rm prometheus_*.deb
  ) >"$folder/promtool.log" 2>&1 || { tail -n 20 "$folder/promtool.log" >&2; die 'apt-get could not download the package prometheus; its log is above'; }
}

# find_promtool: puts it into the PATH.
find_promtool() {
  if command -v promtool >/dev/null; then return; fi
  fetched promtool fetch_promtool
  export PATH=$PATH:$home/usr/bin
}
