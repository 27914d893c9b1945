#!/usr/bin/env bash
# Builds the Python package from its source distribution, as a user without a wheel does, and tests it: pytest, the examples,
# the guide's code blocks, and the stubs with mypy.
#
#   scripts/test-python.sh [--no-install] [--if-available] [ARGUMENTS OF PYTEST]
#
# Needs cargo, and python3 of version 3.9 or later with venv; without --no-install the packages of Debian that are missing are
# installed as root. With --if-available it says so and succeeds where Python or its packages cannot be had. Everything is made
# in target/python.
set -euo pipefail
cd "$(dirname "$0")/.."

install=true optional=false
while [[ ${1:-} == --no-install || ${1:-} == --if-available ]]; do
    [[ $1 == --no-install ]] && install=false || optional=true
    shift
done

# Ends the script without a test: with success where that was asked for.
unavailable() {
    echo "test-python: $1" >&2
    $optional && exit 0
    exit 1
}

missing() {
    if ! command -v python3 > /dev/null; then
        echo python3
    elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
        echo "python3 (version 3.9 or later)"
    elif ! python3 -c 'import venv, ensurepip' 2> /dev/null; then
        echo python3-venv
    fi
}

if [[ -n $(missing) ]] && $install && [[ $(id -u) == 0 ]] && command -v apt-get > /dev/null; then
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv; } > /dev/null || true
fi
if [[ -n $(missing) ]]; then
    unavailable "missing here: $(missing); on Debian: apt-get install python3 python3-venv"
fi

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
# The tests need neither speed nor symbols, and the build is the longest part.
export CARGO_PROFILE_DEV_DEBUG=none
made=$CARGO_TARGET_DIR/python
mkdir -p "$made"

[[ -x $made/venv/bin/python ]] || python3 -m venv "$made/venv"
bin=$made/venv/bin
# pip looks for maturin there.
export PATH=$bin:$PATH
"$bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.8,<2' numpy pytest mypy typing_extensions ||
    unavailable "pip cannot fetch maturin, numpy, pytest and mypy here, so nothing was tested"

# Files of a source distribution have one time, by which cargo cannot tell that they have changed: only files with another
# content are replaced.
rm -rf "$made/dist" "$made/fresh"
mkdir -p "$made/fresh" "$made/sdist"
"$bin/maturin" sdist --manifest-path python/Cargo.toml --out "$made/dist" > "$made/sdist.log" 2>&1 ||
    { cat "$made/sdist.log" >&2; exit 1; }
tar -xzf "$made"/dist/flashgrain-*.tar.gz -C "$made/fresh" --strip-components 1
(cd "$made/fresh" && find . -type f -print0) | while IFS= read -r -d '' file; do
    cmp -s "$made/fresh/$file" "$made/sdist/$file" || install -D -m 644 "$made/fresh/$file" "$made/sdist/$file"
done
(cd "$made/sdist" && find . -type f -print0) | while IFS= read -r -d '' file; do
    [[ -e $made/fresh/$file ]] || rm "$made/sdist/$file"
done

MATURIN_PEP517_ARGS="--profile dev --locked" "$bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --force-reinstall "$made/sdist"

# From elsewhere, so that the installed package is tested and not the folder.
cd "$made"
"$bin/python" -m pytest -c "$OLDPWD/python/pyproject.toml" --rootdir "$OLDPWD/python" -p no:cacheprovider "$@" \
    "$OLDPWD/python/tests"
"$bin/mypy" --config-file "$OLDPWD/python/pyproject.toml" --cache-dir "$made/mypy" -p flashgrain
(cd "$OLDPWD/python" && "$bin/mypy" --cache-dir "$made/mypy-tests" tests examples)
"$bin/python" -m mypy.stubtest flashgrain._flashgrain
