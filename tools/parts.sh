# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by ./test, .ci/run and tests/nightly: runs named parts one after the other and records each for tools/summary.py.

# parts_begin FOLDER: forgets the folder's former results.
parts_begin() {
  parts_folder=$1
  parts_count=0
  parts_lane=''
  rm -rf "$parts_folder"
  mkdir -p "$parts_folder"
}

# part NAME REPORT COMMAND...: runs COMMAND, which writes a JUnit file to REPORT ('-' if it writes none: then the
# part counts as one check, skipped if the command exits with 77). Returns non-zero if the command did.
part() {
  local name=$1 report=$2 rc=0 start_s=$EPOCHREALTIME record times user system cpu_ms part_s
  shift 2
  parts_count=$((parts_count + 1))
  record=$parts_folder/$parts_lane$(printf '%02d' "$parts_count")
  printf '\n== %s\n' "$name"
  # In a shell of its own, whose children are those of the part alone.
  (
    "$@" || rc=$?
    times >"$record.times"
    exit "$rc"
  ) || rc=$?
  times=('' '' 0m0s 0m0s)
  [[ ! -e $record.times ]] || read -ra times -d '' <"$record.times" || true
  rm -f "$record.times"
  # Of the children, as 1m02.345s.
  user=${times[2]} system=${times[3]}
  cpu_ms=$(((${user%m*} + ${system%m*}) * 60000))
  for part_s in "${user#*m}" "${system#*m}"; do
    part_s=${part_s%s}
    [[ $part_s == *.* ]] || part_s+=.000
    cpu_ms=$((cpu_ms + 10#${part_s/./}))
  done
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$rc" "$start_s" "$EPOCHREALTIME" "$report" "$cpu_ms" >"$record.part"
  [[ $rc -eq 0 || $rc -eq 77 ]]
}

# parts_beside NAME COMMAND...: runs COMMAND, which runs parts, in the background: as $!. What it prints goes to FOLDER/NAME.log.
parts_beside() {
  local lane=$1
  shift
  (
    parts_lane=$lane- parts_count=0
    "$@"
  ) >"$parts_folder/$lane.log" 2>&1 &
}

# A clean place for EPOCHREALTIME: it follows the locale's decimal point.
export LC_NUMERIC=C
