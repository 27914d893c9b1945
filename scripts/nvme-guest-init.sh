#!/bin/busybox sh
# The first process of the guest that nvme-guest.sh boots. Lines that begin with `guest: ` are for the user; the last
# one says how many steps have failed.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ TMPDIR=/tmp RUST_BACKTRACE=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
. /settings

say() { echo "guest: $*"; }

# Each line of a command for the user.
shown() { sed 's/^/guest:   /'; }

# Drivers. Poll queues are a parameter of the NVMe driver.
while read -r module; do
    case "$module" in
        nvme.ko) insmod "/modules/$module" poll_queues=2 ;;
        *) insmod "/modules/$module" ;;
    esac
done < /modules/order
tries=0
until [ -b /dev/nvme0n2 ] || [ $tries = 100 ]; do sleep 0.1; tries=$((tries + 1)); done

failed=0
step() {
    name="$1"
    shift
    case " $STEPS " in *" $name "*) ;; *) return ;; esac
    say "== $name"
    if "$@"; then say "$name: passed"; else say "$name: FAILED"; failed=$((failed + 1)); fi
}

backends() {
    flashgrain backends 2>&1 | shown
    flashgrain backends | grep -q '^nvme-passthrough *works'
}

# Tests of the device layer on the namespaces.
device() {
    FLASHGRAIN_NAMESPACES=/dev/ng0n1:/dev/ng0n2 /tests/passthrough --ignored --test-threads 1 > /tmp/device.log 2>&1
    code=$?
    cat /tmp/device.log
    grep -E '^test |^test result' /tmp/device.log | shown
    return $code
}

# A namespace whose block device is mounted is left alone, and readable.
claims() {
    mkfs.ext4 -q -F /dev/nvme0n2 && mount -t ext4 /dev/nvme0n2 /mnt || return 1
    result=0
    flashgrain io /dev/ng0n2 --destroy-contents-of /dev/ng0n2 --read-share 0 --seconds 1 2>&1 | tee /tmp/refused | shown
    grep -q 'in use' /tmp/refused || result=1
    flashgrain io /dev/ng0n2 --seconds 0.2 > /dev/null || result=1
    umount /mnt || result=1
    flashgrain io /dev/ng0n2 --read-share 0 --seconds 0.2 2>&1 | grep -q -e --destroy-contents-of || result=1
    return $result
}

number() { sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" "$2" | head -1; }

heading() {
    if [ "$CLOCK" = instructions ]; then
        say "$(printf '%-42s %22s' "$1" 'instructions per I/O')"
    else
        say "$(printf '%-42s %9s %9s %9s' "$1" IOPS 'p50 us' 'CPU us')"
    fi
}

# One line of the table: the title, the target and the options.
measure() {
    title="$1"
    shift
    if ! flashgrain io "$@" --json --seconds "$SECONDS_EACH" --warmup 0.5 > /tmp/result 2> /tmp/errors; then
        shown < /tmp/errors
        return 1
    fi
    grep '^note' /tmp/errors | shown
    cpu="$(number cpu_us_per_request /tmp/result)"
    if [ "$CLOCK" = instructions ]; then
        say "$(printf '%-42s %22.0f' "$title" "$(echo "$cpu" | awk '{ print $1 * 1000 }')")"
    else
        say "$(printf '%-42s %9.0f %9.1f %9.1f' "$title" "$(number requests_per_s /tmp/result)" \
            "$(number p50_us /tmp/result)" "$cpu")"
    fi
}

# All ways to the drive side by side. Those that look for requests or completions in a loop have no number of
# instructions per I/O: it follows from how long the drive takes.
io() {
    result=0 looping=yes
    [ "$CLOCK" = instructions ] && looping=
    for target in 1 2; do
        block=/dev/nvme0n$target generic=/dev/ng0n$target
        say "namespace $target, $(cat /sys/block/nvme0n$target/queue/logical_block_size)-byte blocks"
        for depth in 1 32; do
            heading "4 KiB random reads, $depth in flight"
            for backend in io_uring ${looping:+io_uring-sqpoll} libaio sync; do
                measure "  $backend" $block --backend $backend --depth $depth || result=1
            done
            measure "  nvme-passthrough" $generic --depth $depth || result=1
            [ "$looping" ] || continue
            measure "  io_uring --polled" $block --backend io_uring --polled --depth $depth || result=1
            measure "  nvme-passthrough --polled" $generic --polled --depth $depth || result=1
        done
        heading "4 KiB random writes (dsync), 8 in flight"
        for backend in io_uring libaio sync; do
            measure "  $backend" $block --backend $backend --depth 8 --read-share 0 --sync dsync \
                --destroy-contents-of $block || result=1
        done
        measure "  nvme-passthrough" $generic --depth 8 --read-share 0 --sync dsync --destroy-contents-of $generic || result=1
    done
    return $result
}

# The profiler by passthrough.
tune() {
    flashgrain tune /dev/ng0n2 --destroy-contents-of /dev/ng0n2 --seconds 60 --write-bytes 512MiB --out /tmp/tune \
        > /tmp/tune.log 2>&1
    code=$?
    tail -25 /tmp/tune.log | shown
    return $code
}

# One of the store's tests.
tested() {
    title="$1"
    shift
    if "$@" > /tmp/store.log 2>&1; then code=0; else code=1; fi
    cat /tmp/store.log
    say "  $title: $(grep -E '^test result|commits survived' /tmp/store.log | tr '\n' ' ')"
    return $code
}

# The store's tests of crashes (kill -9) and of its model: on the namespace itself by passthrough, on its block device,
# and in a file system on the drive.
store() {
    result=0
    mkdir -p "$TESTS_FOLDER"
    mkfs.ext4 -q -F /dev/nvme0n2 && mount -t ext4 /dev/nvme0n2 "$TESTS_FOLDER" || return 1
    for device in /dev/ng0n1 /dev/nvme0n1; do
        FLASHGRAIN_KILL_DEVICE=$device tested "kills, $device" /tests/kill --nocapture || result=1
        FLASHGRAIN_KILL_IO=polled FLASHGRAIN_KILL_DEVICE=$device tested "kills, $device, polled" /tests/kill --nocapture ||
            result=1
        FLASHGRAIN_MODEL_DEVICE=$device tested "model, $device" /tests/all model::a_store_on_a_disk || result=1
    done
    FLASHGRAIN_KILL_IO=sqpoll tested "kills, ext4 on /dev/nvme0n2, io_uring-sqpoll" /tests/kill --nocapture || result=1
    tested "model, ext4 on /dev/nvme0n2" /tests/all model::a_store_on_a_disk || result=1
    umount "$TESTS_FOLDER" || result=1
    return $result
}

say "Linux $(uname -r), $(nproc) processors, $(cat /sys/class/nvme/nvme0/model)"
for name in $STEPS; do step "$name" "$name"; done
echo "guest-end: $failed"
sync
poweroff -f
