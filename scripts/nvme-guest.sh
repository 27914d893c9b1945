#!/usr/bin/env bash
# Boots Debian's kernel with an emulated NVMe drive, and tests and compares the ways to a drive there: NVMe passthrough,
# polled queues, a kernel thread for submissions, and the block layer. Exits with an error if anything fails.
#
#   scripts/nvme-guest.sh [FOLDER]
#
# FOLDER keeps the kernel, the guest's files and results (default: target/nvme-guest). The guest has two processors,
# two poll queues, and two namespaces: 512-byte blocks (/dev/ng0n1) and 4096-byte blocks (/dev/ng0n2). Without KVM the
# processors are emulated, too (TCG), and times are those of the emulator. So the step `io` runs once more, in a guest
# whose clock counts instructions, one in a nanosecond: processor times are numbers of instructions then, and the same
# however busy this machine is.
#
#   KERNEL=linux-image-6.12-amd64   the package of the kernel (default: linux-image-amd64)
#   ACCELERATOR=kvm|tcg             otherwise KVM where it works
#   STEPS="backends io ..."         only these steps of: backends device claims io tune store
#   SECONDS_EACH=2                  time of each measurement
#   TEST_BINARIES="FILE..."         compiled tests to take instead of building them; likewise FLASHGRAIN=FILE
#
# Needs cargo, and on Debian installs what is missing: qemu-system-x86, busybox-static, cpio, kmod, xz-utils, e2fsprogs.
set -euo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"
folder="$(realpath -m "${1:-$here/target/nvme-guest}")"
kernel="${KERNEL:-linux-image-amd64}"
mkdir -p "$folder"

say() { echo "nvme-guest: $*" >&2; }
fail() { say "$*"; exit 1; }

install_missing() {
    local missing=() entry command
    for entry in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio depmod:kmod xz:xz-utils \
        mkfs.ext4:e2fsprogs; do
        command="${entry%%:*}"
        PATH="$PATH:/usr/sbin:/sbin" command -v "$command" > /dev/null || missing+=("${entry#*:}")
    done
    [ ${#missing[@]} = 0 ] && return
    command -v apt-get > /dev/null || fail "missing, and no apt-get to install them: ${missing[*]}"
    [ "$(id -u)" = 0 ] || fail "missing; install them as root: apt-get install ${missing[*]}"
    say "installing ${missing[*]}"
    apt-get install -y -qq --no-install-recommends "${missing[@]}" > "$folder/apt.log" 2>&1 ||
        fail "apt-get could not install ${missing[*]}; see $folder/apt.log"
}

# The kernel's package is unpacked, not installed: nothing of this system's boot changes.
unpack_kernel() {
    local name
    name="$(apt-cache depends "$kernel" | awk '/Depends: linux-image-/ { print $2; exit }')"
    name="${name:-$kernel}"
    kernel_folder="$folder/$name"
    if [ ! -e "$kernel_folder/complete" ]; then
        say "fetching $name"
        rm -rf "$kernel_folder" && mkdir -p "$kernel_folder"
        (cd "$kernel_folder" && apt-get download -qq "$name" 2> apt.log) ||
            fail "apt-get could not fetch $name (apt-get update?); see $kernel_folder/apt.log"
        dpkg-deb -x "$kernel_folder"/*.deb "$kernel_folder" && rm "$kernel_folder"/*.deb
        touch "$kernel_folder/complete"
    fi
    image="$(echo "$kernel_folder"/boot/vmlinuz-*)"
    release="${image##*/vmlinuz-}"
}

# A file of cargo's for a target, by its messages.
built() { sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1; }

build() {
    cd "$here"
    flashgrain="${FLASHGRAIN:-}"
    if [ -z "$flashgrain" ]; then
        say "building flashgrain"
        flashgrain="$(cargo build --release --locked -p flashgrain_cli --message-format=json | built)"
    fi
    read -r -a tests <<< "${TEST_BINARIES:-}"
    if [ ${#tests[@]} = 0 ]; then
        say "building the tests"
        local all=("flashgrain_device passthrough" "flashgrain kill --features testing" "flashgrain all --features testing")
        local one package name options
        for one in "${all[@]}"; do
            read -r package name options <<< "$one"
            # shellcheck disable=SC2086 # the options are words
            tests+=("$(cargo test --release --locked --no-run -p "$package" --test "$name" $options --message-format=json | built)")
        done
    fi
}

# A file with the libraries that it needs, stripped.
add() {
    local file="$1" to="$root/$2" library
    mkdir -p "$(dirname "$to")"
    strip -o "$to" "$file" 2> /dev/null || cp "$file" "$to"
    chmod 755 "$to"
    for library in $(ldd "$file" 2> /dev/null | grep -o '/[^ )]*' | sort -u); do
        [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
    done
}

make_root() {
    local line module
    root="$folder/root"
    rm -rf "$root" && mkdir -p "$root"/{bin,dev,proc,sys,tmp,mnt,etc,modules,tests}
    cp "$(command -v busybox)" "$root/bin/busybox"
    add "$flashgrain" bin/flashgrain
    add "$(PATH="$PATH:/usr/sbin:/sbin" command -v mkfs.ext4)" bin/mkfs.ext4
    for test in "${tests[@]}"; do
        add "$test" "tests/$(basename "$test" | sed 's/-[0-9a-f]\{16\}$//')"
    done
    PATH="$PATH:/usr/sbin:/sbin" depmod -b "$kernel_folder" "$release"
    for module in nvme ext4; do
        PATH="$PATH:/usr/sbin:/sbin" modprobe -d "$kernel_folder" -S "$release" --show-depends "$module"
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r line; do
        module="$(basename "${line%.xz}")"
        case "$line" in *.xz) xz -dc "$line" > "$root/modules/$module" ;; *) cp "$line" "$root/modules/$module" ;; esac
        echo "$module" >> "$root/modules/order"
    done
    cp "$here/scripts/nvme-guest-init.sh" "$root/init" && chmod 755 "$root/init"
    # Tests make their files in a folder of this name, which was compiled into them.
    tests_folder="$(cargo metadata --format-version 1 --no-deps --manifest-path "$here/Cargo.toml" |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/tmp"
}

accelerator() {
    if [ -n "${ACCELERATOR:-}" ]; then echo "$ACCELERATOR"; return; fi
    # A /dev/kvm on a processor without virtualization is that of a host which runs only guests made for it.
    if [ -w /dev/kvm ] && grep -qE '^flags.*\b(vmx|svm)\b' /proc/cpuinfo; then echo kvm; else echo tcg; fi
}

# Boots the guest for some steps, with more options of QEMU behind. On a busy machine the emulated timer may be too
# late for the kernel's check of it at boot.
boot() {
    local how="$1" clock="$2" steps="$3" log="$folder/console-$2.log" cpu size
    shift 3
    [ "$how" = kvm ] && cpu=host || cpu=max
    printf 'STEPS="%s"\nSECONDS_EACH=%s\nTESTS_FOLDER=%s\nCLOCK=%s\n' "$steps" "${SECONDS_EACH:-2}" "$tests_folder" \
        "$clock" > "$root/settings"
    (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$folder/initramfs"
    for size in 512 4096; do rm -f "$folder/drive-$size" && truncate -s 1G "$folder/drive-$size"; done
    say "booting $release ($how) for: $steps; console in $log"
    timeout "${TIME_LIMIT:-3600}" qemu-system-x86_64 -accel "$how" "$@" -cpu "$cpu" -M q35 -smp 2 -m 3G -display none \
        -no-reboot -serial stdio -nic none -kernel "$image" -initrd "$folder/initramfs" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check" \
        -device nvme,id=controller,serial=flashgrain \
        -drive "if=none,id=blocks512,format=raw,cache=writeback,file=$folder/drive-512" \
        -drive "if=none,id=blocks4096,format=raw,cache=writeback,file=$folder/drive-4096" \
        -device nvme-ns,drive=blocks512,bus=controller,nsid=1,logical_block_size=512,physical_block_size=512 \
        -device nvme-ns,drive=blocks4096,bus=controller,nsid=2,logical_block_size=4096,physical_block_size=4096 \
        < /dev/null 2>&1 | sed -u 's/\r$//' | tee "$log" | sed -un 's/^guest: //p' || true
    grep -q '^guest-end: 0$' "$log" || { say "a step failed, or the guest did not end; see $log"; failed=1; }
}

boot_all() {
    local how steps="${STEPS:-backends device claims io tune store}"
    how="$(accelerator)"
    boot "$how" seconds "$steps"
    case "$how $steps " in "tcg "*"io "*) boot tcg instructions io -icount shift=0 ;; esac
}

failed=0
install_missing
unpack_kernel
build
make_root
boot_all
[ $failed = 0 ] || exit 1
say "all steps passed"
