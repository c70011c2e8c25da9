#!/bin/sh
# java.sh MAIN LIBRARIES SNIPPET: compiles the snippet together with the program that calls it, and runs that.
set -eu
here=$(dirname "$0")
classes=$(dirname "$3")/classes
javac -proc:none -cp "$2" -d "$classes" "$here/$1.java" "$here/Shop.java" "$3"
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$2:$classes" "$1"
