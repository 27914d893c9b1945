#!/usr/bin/env bash
# Opens a report.html in headless Chromium, wide and narrow, light and dark, and fails on what a reader would notice: console
# errors, missing charts, a page wider than its window, cut or overlapping labels, unreadable colours, any network request.
#
#   scripts/check-report.sh [--no-install] [--screenshots DIR] [--allow-absent] [report.html]
#
# Without a report it makes one of a made-up drive in which every chart has data. --allow-absent is for profiles of real
# drives, where experiments may not have been run: then every section must show something, chart or reason.
set -euo pipefail
from=$PWD
absolute() { case $1 in /*) echo "$1" ;; *) echo "$from/$1" ;; esac }
cd "$(dirname "$0")/.."

install=true
arguments=()
report=
while (($#)); do
    case "$1" in
        --no-install) install=false ;;
        --allow-absent) arguments+=("$1") ;;
        --screenshots) arguments+=("$1" "$(absolute "${2:?--screenshots needs a directory}")"); shift ;;
        -*) echo "check-report: unknown option $1" >&2; exit 2 ;;
        *) report=$(absolute "$1") ;;
    esac
    shift
done

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $browser ]]; then
    if ! $install; then
        echo "check-report: no Chromium here; install the package chromium or leave out --no-install" >&2
        exit 1
    fi
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null
    browser=$(command -v chromium)
fi

command -v python3 >/dev/null || { apt-get update -qq && apt-get install -y -qq python3; } >/dev/null

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [[ -z $report ]]; then
    report=$scratch/report.html
    # As the tests of the workspace have built it, if they have.
    cargo build --quiet --workspace --example report
    "${CARGO_TARGET_DIR:-target}/debug/examples/report" "$report" >/dev/null
fi
python3 scripts/check_report.py --browser "$browser" --user-data "$scratch/chromium" "${arguments[@]}" "$report"
