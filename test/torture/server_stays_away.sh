#!/bin/sh
# server_stays_away.sh TORTURE: runs it; after its first figures no redis-server can be started.
folder=$(mktemp -d) || exit
trap 'rm -rf "$folder"' EXIT
ln -s "$(command -v redis-server)" "$folder/redis-server"
{
  TMPDIR=$folder PATH=$folder:$PATH "$1" --minutes 1 --seed 1 --nemesis restart
  echo "exit code $?"
} | while read -r line; do
  case $line in
    "["*) ln -sf /bin/false "$folder/redis-server" ;;
  esac
  echo "$line"
done
