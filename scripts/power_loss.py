#!/usr/bin/env python3
"""Records what reaches a block device, and opens stores on what power cuts could have left of it. Standard library only; see power-loss.sh.

The record is in the format of dm-log-writes, whoever wrote it: a sector with the number of entries, then each entry as a sector (where, how many sectors, flags, length of its data) and its data. Marks between
the entries say how far each actor of the kill test was acknowledged by then.
"""

import argparse
import ctypes
import mmap
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

SECTOR = 512
DEVICE_BYTES = 320 << 20
RECORD_BYTES_MAX = 4 << 30
ACTORS = 5
MAGIC, VERSION = 0x6A736677736872, 1
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
TEST = ["--nocapture", "--include-ignored", "--exact"]


def run(*words, **options):
    return subprocess.run(words, check=True, text=True, capture_output=True, **options).stdout.strip()


def unmount(path):
    """The kernel may keep what a killed process had open a little longer."""
    for _ in range(100):
        done = subprocess.run(["umount", path], check=False, text=True, capture_output=True)
        if done.returncode == 0:
            return
        time.sleep(0.05)
    raise RuntimeError(done.stderr.strip())


class Words:
    """What the child says, as it comes out of a pipe."""

    def __init__(self, pipe):
        self.pipe, self.rest = pipe, b""
        self.acknowledged, self.submitted, self.opened = [0] * ACTORS, [0] * ACTORS, False
        self.other = []
        os.set_blocking(pipe, False)

    def hear(self):
        """Whether anything was acknowledged."""
        news = False
        while True:
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                return news
            if not data:
                return news
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                words = line.decode(errors="replace").split(" ")
                if words[0] == "@submits":
                    self.submitted[int(words[1])] = int(words[2])
                elif words[0] == "@acknowledged":
                    self.acknowledged[int(words[1])] = int(words[2])
                    news = True
                elif words[0] == "@starts":
                    news = True
                elif words[0] == "@found":
                    news = news or not self.opened
                    self.opened = True
                elif line and not line.startswith(b"@"):
                    self.other.append(line.decode(errors="replace"))

    def mark(self):
        """Whether the store was open, and what was acknowledged."""
        return " ".join(map(str, [int(self.opened), *self.acknowledged]))


class Record:
    """Writes a record as dm-log-writes does."""

    def __init__(self, path):
        self.file, self.entries = open(path, "wb"), 0
        self.file.write(bytes(SECTOR))

    def add(self, sector, flags, data=b""):
        sectors = len(data) // SECTOR if not flags & MARK else 0
        self.file.write(struct.pack("<QQQQ", sector, sectors, flags, len(data)).ljust(SECTOR, b"\0"))
        self.file.write(data.ljust(-(-len(data) // SECTOR) * SECTOR, b"\0"))
        self.entries += 1

    def close(self):
        self.file.seek(0)
        self.file.write(struct.pack("<QQQI", MAGIC, VERSION, self.entries, SECTOR))
        self.file.close()


class FuseRecorder:
    """A file system with one file, `device`, which a loop device lies on. Writes and flushes of the file are recorded in the order in which they come.

    Words of the child are read before each request is answered, so that what was acknowledged before a write is marked before it.
    """

    ATTRIBUTES = "<QQQQQQIIIIIIIIII"

    def __init__(self, image, record, mount_point, pipe):
        self.image = os.open(image, os.O_RDWR)
        self.record, self.words, self.last_mark = Record(record), Words(pipe), None
        self.fuse = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fuse},rootmode=40000,user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"flashgrain", mount_point.encode(), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount the recorder")

    def attributes(self, node):
        mode, size = (0o040755, 4096) if node == 1 else (0o100600, DEVICE_BYTES)
        return struct.pack(self.ATTRIBUTES, node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def serve(self):
        """Until it is unmounted."""
        while True:
            ready, _, _ = select.select([self.fuse, self.words.pipe], [], [], 1)
            if self.words.hear():
                self.mark()
            if self.fuse not in ready:
                if ready:
                    time.sleep(0.001)
                continue
            try:
                request = os.read(self.fuse, (1 << 20) + 8192)
            except OSError:
                break
            if self.words.hear():
                self.mark()
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            answer = self.answer(opcode, node, request[40:])
            if answer is not None:
                error, data = answer if isinstance(answer, tuple) else (0, answer)
                os.write(self.fuse, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        self.record.close()
        return self.words

    def mark(self):
        if self.words.mark() != self.last_mark:
            self.last_mark = self.words.mark()
            self.record.add(0, MARK, self.last_mark.encode())

    def answer(self, opcode, node, body):
        if opcode == 26:  # INIT: version 7.31, writes of up to 1 MiB.
            return struct.pack("<IIIIHHIIHHI", 7, 31, 1 << 20, 1 << 22, 16, 12, 1 << 20, 1, 256, 0, 0).ljust(64, b"\0")
        if opcode == 1:  # LOOKUP
            return (2, b"") if body != b"device\0" else struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + self.attributes(2)
        if opcode in (3, 4):  # GETATTR, SETATTR
            return struct.pack("<QII", 3600, 0, 0) + self.attributes(node)
        if opcode in (14, 27):  # OPEN, OPENDIR
            return struct.pack("<QII", 0, 0, 0)
        if opcode == 15:  # READ
            _, offset, size = struct.unpack_from("<QQI", body)
            return os.pread(self.image, size, offset)
        if opcode == 16:  # WRITE
            _, offset, size = struct.unpack_from("<QQI", body)
            data = body[40:40 + size]
            os.pwrite(self.image, data, offset)
            self.record.add(offset // SECTOR, 0, data)
            return struct.pack("<II", size, 0)
        if opcode == 20:  # FSYNC
            self.record.add(0, FLUSH)
            return b""
        if opcode in (18, 25, 29):  # FLUSH of a descriptor, RELEASE, RELEASEDIR
            return b""
        if opcode in (2, 42):  # FORGET wants no answer.
            return None
        return 38, b""  # ENOSYS


class Device:
    """A block device whose requests are recorded, and the child's words with them."""

    def __init__(self, recorder, folder, pipe):
        self.recorder, self.folder, self.pipe = recorder, folder, pipe
        self.image, self.record = f"{folder}/image", f"{folder}/record"
        self.loops, self.words = [], None
        os.truncate(os.open(self.image, os.O_CREAT | os.O_RDWR), DEVICE_BYTES)
        if recorder == "fuse":
            self.start_fuse()
        else:
            self.start_dm()

    def loop(self, path):
        self.loops.append(run("losetup", "--find", "--show", path))
        return self.loops[-1]

    def start_fuse(self):
        self.below = f"{self.folder}/below"
        os.mkdir(self.below)
        self.out, out = os.pipe()
        server = FuseRecorder(self.image, self.record, self.below, self.pipe)
        self.server = os.fork()
        if self.server == 0:
            # Without its parent nobody would unmount: requests then fail instead of waiting for ever.
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            words = server.serve()
            os.write(out, repr((words.submitted, words.other[-20:])).encode())
            os._exit(0)
        os.close(server.fuse)
        os.close(out)
        self.path = self.loop(f"{self.below}/device")

    def start_dm(self):
        os.truncate(os.open(self.record, os.O_CREAT | os.O_RDWR), RECORD_BYTES_MAX)
        self.name = f"flashgrain-power-loss-{os.getpid()}"
        table = f"0 {DEVICE_BYTES // SECTOR} log-writes {self.loop(self.image)} {self.loop(self.record)}"
        run("dmsetup", "create", self.name, "--table", table)
        self.path, self.words = f"/dev/mapper/{self.name}", Words(self.pipe)

    def wait(self, seconds, child):
        """Lets the child work, and marks what it says."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and child.poll() is None:
            time.sleep(0.02)
            if self.words and self.words.hear():
                run("dmsetup", "message", self.name, "0", "mark", self.words.mark())

    def end(self):
        """What was submitted at last, and what else the child has said."""
        if self.recorder == "fuse":
            run("losetup", "--detach", self.loops.pop())
            unmount(self.below)
            os.waitpid(self.server, 0)
            return eval(os.read(self.out, 1 << 16).decode(), {})  # Our own repr of lists of numbers and strings.
        self.words.hear()
        run("dmsetup", "remove", "--retry", self.name)
        while self.loops:
            run("losetup", "--detach", self.loops.pop())
        return self.words.submitted, self.words.other[-20:]


def entries(path):
    """Flags, first byte and data (a place in the file) of each entry."""
    with open(path, "rb") as file:
        magic, version, count, sector_bytes = struct.unpack_from("<QQQI", file.read(SECTOR))
        if (magic, version) != (MAGIC, VERSION):
            raise ValueError("the record is not one of dm-log-writes")
        file.seek(sector_bytes)
        for _ in range(count):
            at = file.tell()
            sector, sectors, flags, length = struct.unpack_from("<QQQQ", file.read(sector_bytes))
            mark = file.read(length).decode().rstrip("\0") if flags & MARK else None
            held = 0 if flags & DISCARD else length if flags & MARK else sectors * SECTOR
            yield flags, sector * SECTOR, at + sector_bytes, sectors * SECTOR, mark
            file.seek(at + sector_bytes + -(-held // sector_bytes) * sector_bytes)


class Replay:
    """The device as of some entry; what was not flushed by then is held back."""

    def __init__(self, record, image):
        self.entries = list(entries(record))
        self.record = mmap.mmap(os.open(record, os.O_RDONLY), 0, prot=mmap.PROT_READ)
        self.image, self.at, self.pending = image, 0, []
        self.opened, self.acknowledged = False, [0] * ACTORS
        self.file = os.open(image, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        os.truncate(self.file, DEVICE_BYTES)

    def put(self, file, write, sectors=None):
        flags, offset, at, length, _ = write
        if flags & DISCARD:
            os.pwrite(file, bytes(length), offset)
            return
        length = length if sectors is None else sectors * SECTOR
        os.pwrite(file, self.record[at:at + length], offset)

    def settle(self):
        for write in self.pending:
            self.put(self.file, write)
        self.pending = []

    def go_to(self, end):
        """All entries before this one have happened."""
        for entry in self.entries[self.at:end]:
            flags, _, _, length, mark = entry
            if flags & MARK:
                opened, *acknowledged = map(int, mark.split())
                self.opened, self.acknowledged = bool(opened), acknowledged
                continue
            if flags & FLUSH:
                # What it comes with is written behind it.
                self.settle()
            if flags & FUA:
                self.settle_order(entry)
            elif length:
                self.pending.append(entry)
        self.at = end

    def settle_order(self, entry):
        """A write through the cache is durable at once; what was pending at the same place is older."""
        _, offset, _, length, _ = entry
        for write in [write for write in self.pending if write[1] < offset + length and offset < write[1] + write[3]]:
            self.put(self.file, write)
            self.pending.remove(write)
        self.put(self.file, entry)

    def cut(self, path, chance):
        """The device after a power cut now; what of the pending writes it kept, in words."""
        run("cp", "--sparse=always", "--reflink=auto", self.image, path)
        share = chance.choice([0.0, 0.0, 0.2, 0.5, 0.8, 1.0])
        kept = [write for write in self.pending if chance.random() < share]
        torn = chance.randrange(len(kept)) if kept and chance.random() < 0.5 else None
        with open(path, "r+b") as file:
            for number, write in enumerate(kept):
                sectors = chance.randrange(write[3] // SECTOR + 1) if number == torn else None
                self.put(file.fileno(), write, sectors)
        words = f"{len(kept)} of {len(self.pending)} writes kept" + (", one torn" if torn is not None else "")
        return words, len(self.pending) - len(kept)


def clean_up(folder):
    """Whatever is still mounted or attached after something went wrong."""
    for place in ("mounted", "below"):
        for loop in [line.split(":")[0] for line in run("losetup", "--all").splitlines() if folder in line]:
            subprocess.run(["umount", "--lazy", f"{folder}/mounted"], check=False, capture_output=True)
            subprocess.run(["losetup", "--detach", loop], check=False, capture_output=True)
        subprocess.run(["umount", "--lazy", f"{folder}/{place}"], check=False, capture_output=True)


class Round:
    """One record and what is made of it."""

    def __init__(self, arguments, folder, chance):
        self.arguments, self.folder, self.chance = arguments, folder, chance
        self.mounted = f"{folder}/mounted"
        os.mkdir(self.mounted)

    def record(self, seconds):
        """A new store, used for some time on a recorded device."""
        pipe, say = os.pipe()
        device = Device(self.arguments.recorder, self.folder, pipe)
        try:
            run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device.path)
            run("mount", "-t", "ext4", device.path, self.mounted)
            environment = {**os.environ, "FLASHGRAIN_KILL_CHILD": f"{self.mounted}/store"}
            # The first mark: what was before is not the store's.
            os.write(say, b"@starts\n")
            child = subprocess.Popen([self.arguments.program, *TEST, self.arguments.test], env=environment, stdout=subprocess.DEVNULL, stderr=say)
            device.wait(seconds, child)
            ended = child.poll()
            child.send_signal(signal.SIGKILL)
            child.wait()
            unmount(self.mounted)
        finally:
            os.close(say)
            self.submitted, other = device.end()
        if ended is not None:
            sys.exit("the child ended by itself:\n" + "\n".join(other))
        return device.record

    def check(self, image, replay):
        """What is wrong with the store on an image; None if nothing is."""
        loop = run("losetup", "--find", "--show", image)
        try:
            mounted = subprocess.run(["mount", "-t", "ext4", loop, self.mounted], check=False, capture_output=True, text=True)
            if mounted.returncode != 0:
                return None if not self.formatted(replay) else f"the file system is not mounted: {mounted.stderr.strip()}"
            try:
                return self.compare(replay)
            finally:
                unmount(self.mounted)
        finally:
            run("losetup", "--detach", loop)

    def formatted(self, replay):
        """Whether the file system was there for sure: the store was opened on it."""
        return replay.opened

    def compare(self, replay):
        # Nothing of a store that was never opened is promised, but that it can be made.
        submitted = self.submitted
        bounds = " ".join(f"{least}:{most}" for least, most in zip(replay.acknowledged, submitted))
        environment = {**os.environ, "FLASHGRAIN_KILL_CHECK": f"{self.mounted}/store", "FLASHGRAIN_KILL_BOUNDS": bounds}
        if replay.opened and not os.path.exists(f"{self.mounted}/store"):
            return "the store's directory is lost"
        checked = subprocess.run([self.arguments.program, *TEST, self.arguments.test], env=environment, check=False, capture_output=True, text=True)
        if checked.returncode != 0:
            return f"bounds {bounds}\n{checked.stdout}\n{checked.stderr}"
        self.commits = int(checked.stdout.split("@commits ")[1].split()[0])
        return None


def play(arguments, folder, chance, end):
    """One round; how many power cuts it had."""
    this = Round(arguments, folder, chance)
    record = this.record(arguments.record_seconds)
    replay = Replay(record, f"{folder}/replayed")
    start = next(number for number, entry in enumerate(replay.entries) if entry[0] & MARK)
    writes = [number for number, entry in enumerate(replay.entries) if number > start and not entry[0] & MARK]
    flushes = [number for number in writes if replay.entries[number][0] & (FLUSH | FUA)]
    # Most can go wrong just after something was acknowledged.
    marks = [number for number, entry in enumerate(replay.entries) if number > start and entry[0] & MARK]
    third = arguments.cuts // 3
    ends = [number for kind in (writes, flushes, marks) for number in chance.sample(kind, min(len(kind), third))]
    cuts, most, lost = 0, 0, 0
    for end_at in sorted(number + 1 for number in ends):
        replay.go_to(end_at)
        kept, dropped = replay.cut(f"{folder}/cut", chance)
        lost += dropped
        wrong = this.check(f"{folder}/cut", replay)
        cuts += 1
        most = max(most, getattr(this, "commits", 0))
        if wrong is not None:
            arguments.keep = True
            sys.exit(f"FAILED after entry {end_at} of {len(replay.entries)} ({kept}), image in {folder}/cut: {wrong}")
        if time.monotonic() > end:
            break
    print(f"{len(writes)} requests, {len(flushes)} flushes, {sum(replay.acknowledged[:-1])} commits acknowledged at the last of {cuts} cuts, which lost {lost} writes; {most} commits recovered at most", flush=True)
    os.close(replay.file)
    return cuts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recorder", choices=["fuse", "dm"], required=True)
    parser.add_argument("--program", required=True, help="that of the test")
    parser.add_argument("--test", required=True, help="the test that works until it is killed, and compares")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record-seconds", type=float, default=2, help="how long each store is used")
    parser.add_argument("--cuts", type=int, default=60, help="power cuts of each record")
    arguments = parser.parse_args()
    arguments.keep = False
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    chance, end = random.Random(arguments.seed), time.monotonic() + arguments.seconds
    print(f"seed {arguments.seed}, recorder {arguments.recorder}")
    cuts = rounds = 0
    while time.monotonic() < end:
        folder = tempfile.mkdtemp(prefix="flashgrain-power-loss-")
        try:
            cuts += play(arguments, folder, chance, end)
        finally:
            clean_up(folder)
            if not arguments.keep:
                shutil.rmtree(folder, ignore_errors=True)
        rounds += 1
    print(f"{cuts} power cuts in {rounds} stores: nothing lost, wrong or refused")


if __name__ == "__main__":
    main()
