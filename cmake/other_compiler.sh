#!/bin/sh
# A compiler launcher that takes another compiler (CMake knows one for all targets).
#
# usage: other_compiler.sh COMPILER [LAUNCHER...] -- REPLACED [OPTIONS...]
#   runs LAUNCHER... COMPILER OPTIONS..., without those that GCC alone knows
set -e
compiler=$1
shift
left=$#
before=yes
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case "$before$word" in
    yes--) before=replaced ;;
    replaced*) before=no; set -- "$@" "$compiler" ;;
    no--param=*) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "$@"
