#!/usr/bin/env bash
# Power cuts under a real kernel and file system: scripts/power-loss.sh [--sqlite] [--seconds N] [--seed S]
#
# The kill test's child works on a store on ext4 on a loop device; everything that reaches the block device is recorded, flushes included, and so is what the child was told to be durable, and when. Then
# the device is made as a power cut could have left it (everything up to some point; of what was not flushed then, all, some or none, one write perhaps torn between sectors), mounted, and the store on it
# opened and compared. With --sqlite, SQLite writes databases through the VFS instead, in several layouts and journal modes. The recorder is dm-log-writes where the kernel has it, otherwise a FUSE file under the loop device, which sees the same requests. Needs root, loop devices and python3; says what is missing, and exits with 0, where
# that cannot be had. POWER_LOSS_RECORDER=fuse or =dm chooses. Nothing outside a temporary directory is touched.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "power-loss.sh: skipped: $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "only root may attach loop devices and mount: run it with sudo"
for program in python3 losetup mkfs.ext4 mount umount cargo; do
    command -v "$program" >/dev/null || skip "$program is missing: install python3, util-linux, e2fsprogs and Rust"
done
unshare --mount true 2>/dev/null || skip "this root may not mount (no CAP_SYS_ADMIN): run it outside the container, or in a privileged one"
[ -e /dev/loop-control ] || skip "there is no /dev/loop-control: the kernel needs CONFIG_BLK_DEV_LOOP, and a container access to it"
grep -qw ext4 /proc/filesystems || skip "the kernel has no ext4 (CONFIG_EXT4_FS)"
probe=$(mktemp)
truncate --size=1M "$probe"
loop=$(losetup --find --show "$probe" 2>/dev/null) || { rm "$probe"; skip "no loop device can be attached here: give the container /dev/loop*"; }
losetup --detach "$loop"
rm "$probe"

recorder=${POWER_LOSS_RECORDER-}
dm=""
if ! command -v dmsetup >/dev/null; then
    dm="dmsetup is missing (Debian: dmsetup)"
elif ! dmsetup version >/dev/null 2>&1; then
    dm="the kernel has no device-mapper (CONFIG_BLK_DEV_DM)"
elif ! dmsetup targets | grep -q '^log-writes'; then
    dm="the kernel has no dm-log-writes, or its module is not loaded (modprobe dm-log-writes; CONFIG_DM_LOG_WRITES)"
fi
if [ -z "$recorder" ]; then
    if [ -z "$dm" ]; then
        recorder=dm
    else
        echo "power-loss.sh: no dm-log-writes: $dm; recording below the loop device instead"
        recorder=fuse
    fi
fi
[ "$recorder" != dm ] || [ -z "$dm" ] || skip "$dm"
[ "$recorder" != fuse ] || [ -e /dev/fuse ] || skip "${dm:-}; and there is no /dev/fuse (CONFIG_FUSE_FS) to record with instead"

if [ "${1-}" = --sqlite ]; then
    shift
    package=flashgrain_sqlite_vfs binary=vfs test=power_cuts::a_database_has_what_it_acknowledged
else
    package=flashgrain binary=kill test=a_killed_store_has_what_it_acknowledged
fi
program=$(cargo test --locked --quiet -p "$package" --test "$binary" --no-run --message-format=json |
    python3 -c 'import json, sys
print([message["executable"] for message in map(json.loads, sys.stdin) if message.get("executable")][-1])')
exec python3 scripts/power_loss.py --recorder "$recorder" --program "$program" --test "$test" "$@"
