# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced: sets `venv`, a virtual environment with the tools of rtl/requirements.txt, and makes it at the first call.
rtl=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${rtl%/*}/build/venv-rtl
(
  mkdir -p "${venv%/*}"
  exec 9>"$venv.lock"
  flock 9
  if ! cmp -s "$rtl/requirements.txt" "$venv/installed.txt"; then
    /usr/bin/python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --prefer-binary -r "$rtl/requirements.txt"
    cp "$rtl/requirements.txt" "$venv/installed.txt"
  fi
)
