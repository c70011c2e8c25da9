#!/bin/sh
# go.sh SNIPPET: builds the snippet together with the program that calls it, and runs that.
set -eu
folder=$(dirname "$1")
sed 's/^package shop$/package main/' "$1" >"$folder/snippet.go"
cp samples/snippets/go.go "$folder/shop.go"
go build -o "$folder/shop" "$folder/shop.go" "$folder/snippet.go"
exec "$folder/shop"
