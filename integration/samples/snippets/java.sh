#!/bin/sh
# java.sh MAIN LIBRARIES SNIPPET: compiles the snippet together with the program that calls it, and runs that.
# java.sh --probe LIBRARIES: whether that can be done.
set -eu
if [ "$1" = --probe ]; then
  [ -n "$2" ]
  exec javac -version
fi
classes=$(dirname "$3")/classes
javac -proc:none -cp "$2" -d "$classes" "$(dirname "$0")/$1.java" "$(dirname "$0")/Shop.java" "$3"
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$2:$classes" "$1"
