# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by ./test and .ci/run: runs named parts one after the other and records each for tools/summary.py.

# parts_begin FOLDER: forgets the folder's former results.
parts_begin() {
  parts_folder=$1
  parts_count=0
  rm -rf "$parts_folder"
  mkdir -p "$parts_folder"
}

# part NAME REPORT COMMAND...: runs COMMAND, which writes a JUnit file to REPORT ('-' if it writes none: then the
# part counts as one check, skipped if the command exits with 77). Returns non-zero if the command did.
part() {
  local name=$1 report=$2 rc=0 start_s=$EPOCHREALTIME
  shift 2
  printf '\n== %s\n' "$name"
  "$@" || rc=$?
  parts_count=$((parts_count + 1))
  printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$rc" "$start_s" "$EPOCHREALTIME" "$report" \
    >"$parts_folder/$(printf '%02d' "$parts_count").part"
  [[ $rc -eq 0 || $rc -eq 77 ]]
}

# A clean place for EPOCHREALTIME: it follows the locale's decimal point.
export LC_NUMERIC=C
