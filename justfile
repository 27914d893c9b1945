# Shorthands; everything works without `just` too.

# Check everything and change nothing: what CI runs.
verify:
    .ci/run

# Format, and apply what clippy can mend by itself.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

# Let git check format, comment width, and the subjects and bodies of commits.
hooks:
    git config core.hooksPath .githooks

# A tarball for any Linux: static binary, manual pages, completions, documentation.
dist:
    scripts/dist.sh

# Compare the I/O path with fio's on this machine.
compare-fio *ARGUMENTS:
    scripts/compare-fio.sh {{ARGUMENTS}}

# Manual pages and completions into target/.
man:
    cargo run --release --quiet -- man --out target/man
    cargo run --release --quiet -- completions bash > target/flashgrain.bash

# Measure beside the other stores and make the report; --quick for trying.
bench-peers *ARGUMENTS:
    scripts/bench-peers.sh {{ARGUMENTS}}

# The documentation as a site, into target/book.
book:
    scripts/build-book.sh
