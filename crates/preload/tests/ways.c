/* ways NAME WAY: does one thing in one way with a file of 1,000 bytes, and says the number of its error, or 0.
   Ways that write append "LOG". */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *path;
static char *self;
static char **environment;

#define WAY(name) static int name(int file)
#define OK(call) do { if ((call) < 0) return errno; } while (0)
#define IS(condition) do { if (!(condition)) return 1000 + __LINE__; } while (0)
#define WROTE(call) do { long wrote = (call); if (wrote < 0) return errno; IS(wrote == 3); } while (0)

static struct iovec record[2] = {{"L", 1}, {"OG", 2}};
static char buffer[4096];
static int other(void) { return open("other", O_RDWR | O_CLOEXEC); }
static int ended(pid_t child) {
    int status;
    OK(waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 999;
}
static int of_child(int result) { _exit(result); }
static int is_base(const char *bytes, long count) {
    if (count < 0) return errno;
    for (long at = 0; at < count; at++) if (bytes[at] != '0' + at % 10) return 2;
    return count == 1000 ? 0 : 3;
}

/* --- writing --- */
WAY(by_write) { WROTE(write(file, "LOG", 3)); return 0; }
WAY(by_pwrite) { WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_writev) { WROTE(writev(file, record, 2)); return 0; }
WAY(by_pwritev) { WROTE(pwritev(file, record, 2, 1000)); return 0; }
WAY(by_pwritev2) { WROTE(pwritev2(file, record, 2, 1000, 0)); return 0; }
WAY(by_pwritev2_position) { WROTE(pwritev2(file, record, 2, -1, RWF_DSYNC)); IS(lseek(file, 0, SEEK_CUR) == 1003); return 0; }
WAY(by_pwritev2_append) { WROTE(pwritev2(file, record, 2, 0, RWF_APPEND | RWF_SYNC)); return 0; }
WAY(by_pwritev2_unknown) { WROTE(pwritev2(file, record, 2, 1000, 0x40000000)); return 0; }
static int wait_for(struct aiocb *block) {
    const struct aiocb *list[] = {block};
    while (aio_error(block) == EINPROGRESS) aio_suspend(list, 1, NULL);
    errno = aio_error(block);
    return aio_return(block);
}
WAY(by_aio_write) {
    struct aiocb block = {.aio_fildes = file, .aio_buf = "LOG", .aio_nbytes = 3, .aio_offset = 1000};
    OK(aio_write(&block));
    WROTE(wait_for(&block));
    return 0;
}
WAY(by_lio_listio) {
    struct aiocb block = {.aio_fildes = file, .aio_buf = "LOG", .aio_nbytes = 3, .aio_offset = 1000, .aio_lio_opcode = LIO_WRITE}, *list[] = {&block};
    lio_listio(LIO_WAIT, list, 1, NULL);
    WROTE(wait_for(&block));
    return 0;
}
WAY(by_io_submit) {
    aio_context_t context = 0;
    struct iocb block = {.aio_fildes = file, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (unsigned long)"LOG", .aio_nbytes = 3, .aio_offset = 1000}, *list[] = {&block};
    struct io_event event;
    OK(syscall(SYS_io_setup, 1, &context));
    OK(syscall(SYS_io_submit, context, 1, list));
    OK(syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
    if (event.res < 0) return -event.res;
    return 0;
}
static int uring(int file, int operation, void *bytes, int length, long offset) {
    struct io_uring_params set = {0};
    int ring = syscall(SYS_io_uring_setup, 1, &set);
    OK(ring);
    char *submissions = mmap(NULL, set.sq_off.array + 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *completions = mmap(NULL, set.cq_off.cqes + 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = mmap(NULL, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (submissions == MAP_FAILED || completions == MAP_FAILED || entry == MAP_FAILED) return errno;
    memset(entry, 0, sizeof *entry);
    entry->opcode = operation; entry->fd = file; entry->addr = (unsigned long)bytes; entry->len = length; entry->off = offset;
    *(unsigned *)(submissions + set.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(submissions + set.sq_off.tail), 1, __ATOMIC_RELEASE);
    OK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    int result = ((struct io_uring_cqe *)(completions + set.cq_off.cqes))->res;
    close(ring);
    if (result < 0) { errno = -result; return -1; }
    return result;
}
WAY(by_io_uring) { int wrote = uring(file, IORING_OP_WRITE, "LOG", 3, 1000); if (wrote < 0) return errno; return wrote == 3 ? 0 : wrote; }
WAY(by_fdopen) {
    FILE *stream = fdopen(file, "r+");
    if (!stream) return errno;
    IS(fseek(stream, 1000, SEEK_SET) == 0 && fwrite("LOG", 1, 3, stream) == 3);
    return fclose(stream) ? errno : 0;
}
static int to_stream(FILE *stream) {
    if (!stream) return errno;
    IS(fwrite("LOG", 1, 3, stream) == 3);
    return fclose(stream) ? errno : 0;
}
WAY(by_fopen) { return to_stream(fopen(path, "a")); }
WAY(by_freopen) { return to_stream(freopen(path, "a", stdin)); }
WAY(by_dprintf) { WROTE(dprintf(file, "LOG")); return 0; }
WAY(by_sendfile) { int from = other(); off_t at = 0; WROTE(sendfile(file, from, &at, 3)); return 0; }
WAY(by_copy_file_range) { int from = other(); WROTE(copy_file_range(from, NULL, file, NULL, 3, 0)); return 0; }
WAY(by_splice) { int both[2]; IS(pipe(both) == 0 && write(both[1], "LOG", 3) == 3); WROTE(splice(both[0], NULL, file, NULL, 3, 0)); return 0; }
WAY(by_syscall_sendfile) { int from = other(); off_t at = 0; WROTE(syscall(SYS_sendfile, file, from, &at, 3)); return 0; }
WAY(by_syscall_copy_file_range) { int from = other(); WROTE(syscall(SYS_copy_file_range, from, NULL, file, NULL, 3, 0)); return 0; }
WAY(by_syscall_splice) { int both[2]; IS(pipe(both) == 0 && write(both[1], "LOG", 3) == 3); WROTE(syscall(SYS_splice, both[0], NULL, file, NULL, 3, 0)); return 0; }
WAY(by_syscall_write) { WROTE(syscall(SYS_write, file, "LOG", 3)); return 0; }
WAY(by_syscall_pwritev2) { WROTE(syscall(SYS_pwritev2, file, record, 2, 1000L, 0L, 0)); return 0; }
WAY(by_mmap) {
    char *bytes = mmap(NULL, 1000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) return errno;
    WROTE(write(file, "LOG", 3));
    return is_base(bytes, 1000);
}
WAY(by_syscall_mmap) {
    long bytes = syscall(SYS_mmap, NULL, 1000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
    if (bytes == -1) return errno;
    WROTE(write(file, "LOG", 3));
    return is_base((char *)bytes, 1000);
}
WAY(by_fork) { pid_t child = fork(); if (child == 0) of_child(by_write(file)); return ended(child); }
WAY(by_fork_and_parent) {
    pid_t child = fork();
    if (child == 0) of_child(pwrite(file, "L", 1, 1000) == 1 ? 0 : errno);
    int result = ended(child);
    if (result) return result;
    WROTE(pwrite(file, "LOG", 3, 1000));
    return 0;
}
static int begun(char *way, int descriptor, posix_spawn_file_actions_t *actions) {
    char number[16];
    sprintf(number, "%d", descriptor);
    char *words[] = {self, (char *)path, way, number, NULL};
    pid_t child;
    int result = posix_spawn(&child, self, actions, NULL, words, environment);
    return result ? result : ended(child);
}
WAY(by_execve) {
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        sprintf(number, "%d", file);
        execl(self, self, path, "child_writes", number, NULL);
        of_child(998);
    }
    return ended(child);
}
WAY(by_posix_spawn) { return begun("child_writes", file, NULL); }
WAY(by_spawn_adddup2) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, file, 77);
    return begun("child_writes", 77, &actions);
}
WAY(by_spawn_addopen) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int result = posix_spawn_file_actions_addopen(&actions, 77, path, O_WRONLY | O_APPEND, 0);
    return result ? result : begun("child_writes", 77, &actions);
}
WAY(by_scm_rights) {
    int both[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, both));
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec one = {"x", 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &file, sizeof(int));
    OK(sendmsg(both[1], &message, 0));
    return begun("child_receives", both[0], NULL);
}
WAY(child_writes_to) { lseek(file, 0, SEEK_END); WROTE(write(file, "LOG", 3)); return 0; }
WAY(child_receives_from) {
    char byte;
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    OK(recvmsg(file, &message, 0));
    int got;
    memcpy(&got, CMSG_DATA(&control.head), sizeof(int));
    return child_writes_to(got);
}
WAY(by_dup) { int two = dup(file); OK(two); close(file); return by_write(two); }
WAY(by_dup2) { OK(dup2(file, 60)); close(file); return by_write(60); }
WAY(by_dup3) { OK(dup3(file, 61, O_CLOEXEC)); return by_write(61); }
WAY(by_dupfd) { int two = fcntl(file, F_DUPFD, 70); OK(two); IS(two >= 70); return by_write(two); }
WAY(by_dup2_to_output) { OK(dup2(file, 1)); return by_write(1); }
WAY(by_dup_to_input) { close(0); int two = dup(file); OK(two); return by_write(two); }
WAY(by_syscall_dup) { int two = syscall(SYS_dup, file); OK(two); return by_write(two); }
WAY(by_dup2_over_all) { for (int at = 3; at < 1000; at++) if (at != file) OK(dup2(0, at)); return by_write(file); }
static int appended(int two) { OK(two); WROTE(write(two, "LOG", 3)); IS(fcntl(two, F_GETFL) & O_APPEND); return close(two) ? errno : 0; }
WAY(by_proc) { char name[32]; sprintf(name, "/proc/self/fd/%d", file); return appended(open(name, O_WRONLY | O_APPEND)); }
WAY(by_dev_fd) { char name[32]; sprintf(name, "/dev/fd/%d", file); return appended(open(name, O_WRONLY | O_APPEND)); }
WAY(by_symlink) { OK(symlink(path, "a-link")); return appended(open("a-link", O_WRONLY | O_APPEND)); }
WAY(by_link) { OK(link(path, "a-name")); return appended(open("a-name", O_WRONLY | O_APPEND)); }
WAY(by_linkat_empty) { OK(linkat(file, "", AT_FDCWD, "a-name", AT_EMPTY_PATH)); return appended(open("a-name", O_WRONLY | O_APPEND)); }
WAY(by_rename) { OK(rename(path, "a-name")); int result = appended(open("a-name", O_WRONLY | O_APPEND)); OK(rename("a-name", path)); return result; }
WAY(by_exchange) { OK(renameat2(AT_FDCWD, "other", AT_FDCWD, path, RENAME_EXCHANGE)); int result = appended(open("other", O_WRONLY | O_APPEND)); OK(renameat2(AT_FDCWD, "other", AT_FDCWD, path, RENAME_EXCHANGE)); return result; }
WAY(by_open) { return appended(open(path, O_WRONLY | O_APPEND)); }
WAY(by_openat) { return appended(openat(AT_FDCWD, path, O_WRONLY | O_APPEND)); }
WAY(by_syscall_open) { return appended(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND, 0)); }
WAY(by_openat2) { struct open_how how = {.flags = O_WRONLY | O_APPEND}; return appended(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how)); }
WAY(by_openat2_beneath) { struct open_how how = {.flags = O_WRONLY | O_APPEND, .resolve = RESOLVE_BENEATH}; return appended(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how)); }
WAY(by_handle) {
    union { struct file_handle handle; char room[256]; } place;
    int mount;
    place.handle.handle_bytes = 128;
    if (name_to_handle_at(AT_FDCWD, path, &place.handle, &mount, 0) < 0) return errno;
    return by_write(file);
}
WAY(by_setfl) {
    OK(lseek(file, 0, SEEK_SET));
    OK(fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_APPEND));
    IS(fcntl(file, F_GETFL) & O_APPEND);
    return by_write(file);
}
WAY(by_ftruncate) { OK(ftruncate(file, 1003)); WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_truncate) { OK(truncate(path, 1003)); WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_syscall_truncate) { OK(syscall(SYS_truncate, path, 1003)); WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_syscall_ftruncate) { OK(syscall(SYS_ftruncate, file, 1003)); WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(after_vfork) {
    pid_t child = vfork();
    if (child == 0) { close(file); dup2(0, file); _exit(0); }
    int result = ended(child);
    return result ? result : by_write(file);
}
WAY(after_a_closed_duplicate) { int two = dup(file); OK(two); OK(close(two)); return by_write(file); }
WAY(after_close_of_others) { for (int at = 3; at < 2000; at++) if (at != file) close(at); return by_write(file); }
WAY(after_close_range_of_others) { OK(close_range(file + 1, ~0u, 0)); return by_write(file); }
WAY(after_closefrom_of_others) { closefrom(file + 1); return by_write(file); }
WAY(after_the_private_is_closed) {
    OK(syscall(SYS_close_range, file + 1, ~0u, 0));
    for (int at = 0; at < 1000; at++) { int two = other(); if (two < 0) break; }
    return by_write(file);
}

/* --- setting room aside, clones --- */
WAY(by_fallocate) { OK(fallocate(file, 0, 1000, 3)); WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_posix_fallocate) { int result = posix_fallocate(file, 1000, 3); if (result) return result; WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_syscall_fallocate) { OK(syscall(SYS_fallocate, file, 0, 1000L, 3L)); WROTE(pwrite(file, "LOG", 3, 1000)); return 0; }
WAY(by_clone_to) { int from = other(); OK(ioctl(file, FICLONE, from)); return 0; }
WAY(by_clone_from) { int to = other(); OK(ioctl(to, FICLONE, file)); return 0; }

/* --- reading --- */
WAY(by_read) { lseek(file, 0, SEEK_SET); return is_base(buffer, read(file, buffer, sizeof buffer)); }
WAY(by_checked_read) { volatile size_t length = 4000; lseek(file, 0, SEEK_SET); return is_base(buffer, read(file, buffer, length)); }
WAY(by_checked_pread) { volatile size_t length = 4000; return is_base(buffer, pread(file, buffer, length, 0)); }
WAY(by_pread) { return is_base(buffer, pread(file, buffer, sizeof buffer, 0)); }
static struct iovec room[2] = {{buffer, 300}, {buffer + 300, 1000}};
WAY(by_readv) { lseek(file, 0, SEEK_SET); return is_base(buffer, readv(file, room, 2)); }
WAY(by_preadv) { return is_base(buffer, preadv(file, room, 2, 0)); }
WAY(by_preadv2) { return is_base(buffer, preadv2(file, room, 2, 0, 0)); }
WAY(by_aio_read) {
    struct aiocb block = {.aio_fildes = file, .aio_buf = buffer, .aio_nbytes = 1000};
    OK(aio_read(&block));
    return is_base(buffer, wait_for(&block));
}
WAY(by_io_uring_read) { return is_base(buffer, uring(file, IORING_OP_READ, buffer, 4096, 0)); }
WAY(by_stream_read) { FILE *stream = fopen(path, "r"); if (!stream) return errno; return is_base(buffer, fread(buffer, 1, 4096, stream)); }
WAY(by_fdopen_read) { lseek(file, 0, SEEK_SET); FILE *stream = fdopen(file, "r"); if (!stream) return errno; return is_base(buffer, fread(buffer, 1, 4096, stream)); }
WAY(by_mmap_read) { char *bytes = mmap(NULL, 1000, PROT_READ, MAP_PRIVATE, file, 0); if (bytes == MAP_FAILED) return errno; return is_base(bytes, 1000); }
WAY(by_sendfile_read) { int both[2]; IS(pipe(both) == 0); off_t at = 0; OK(sendfile(both[1], file, &at, 1000)); return is_base(buffer, read(both[0], buffer, 4096)); }
WAY(by_splice_read) { int both[2]; IS(pipe(both) == 0); loff_t at = 0; OK(splice(file, &at, both[1], NULL, 1000, 0)); return is_base(buffer, read(both[0], buffer, 4096)); }
WAY(by_proc_read) { char name[32]; sprintf(name, "/proc/self/fd/%d", file); int two = open(name, O_RDONLY); OK(two); return is_base(buffer, read(two, buffer, 4096)); }
WAY(read_of_write_only) { int two = open(path, O_WRONLY); OK(two); OK(read(two, buffer, 10)); return 0; }
WAY(write_of_read_only) { int two = open(path, O_RDONLY); OK(two); OK(write(two, "LOG", 3)); return 0; }
WAY(truncation_of_read_only) { int two = open(path, O_RDONLY); OK(two); OK(ftruncate(two, 3)); return 0; }

/* --- lengths and positions --- */
extern int __xstat(int, const char *, struct stat *), __lxstat(int, const char *, struct stat *), __fxstat(int, int, struct stat *);
#define LENGTH(name, call) WAY(name) { struct stat found; OK(call); IS(found.st_size == 1000); return 0; }
LENGTH(by_stat, stat(path, &found))
LENGTH(by_lstat, lstat(path, &found))
LENGTH(by_fstat, fstat(file, &found))
LENGTH(by_fstatat, fstatat(AT_FDCWD, path, &found, 0))
LENGTH(by_fstatat_empty, fstatat(file, "", &found, AT_EMPTY_PATH))
LENGTH(by_old_stat, __xstat(1, path, &found))
LENGTH(by_old_lstat, __lxstat(1, path, &found))
LENGTH(by_old_fstat, __fxstat(1, file, &found))
LENGTH(by_stat_when_closed, (close(file), stat(path, &found)))
WAY(by_statx) { struct statx found; OK(statx(AT_FDCWD, path, 0, STATX_SIZE, &found)); IS(found.stx_size == 1000); return 0; }
WAY(by_seek) {
    IS(lseek(file, 0, SEEK_END) == 1000 && lseek(file, -10, SEEK_CUR) == 990 && lseek(file, 5, SEEK_SET) == 5);
    IS(lseek(file, 5, SEEK_DATA) == 5 && lseek(file, 5, SEEK_HOLE) == 1000);
    IS(lseek(file, 1000, SEEK_DATA) == -1 && errno == ENXIO);
    IS(lseek(file, -1, SEEK_SET) == -1 && errno == EINVAL);
    return 0;
}

/* --- the file, not its content --- */
WAY(by_fsync) { OK(fsync(file)); OK(fdatasync(file)); OK(syncfs(file)); OK(sync_file_range(file, 0, 1000, SYNC_FILE_RANGE_WRITE)); return 0; }
WAY(by_advice) { int result = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); if (result) return result; OK(readahead(file, 0, 1000)); return 0; }
WAY(by_owner) { OK(fchmod(file, 0640)); OK(fchown(file, getuid(), getgid())); OK(futimens(file, NULL)); OK(futimes(file, NULL)); return 0; }
WAY(by_attributes) { fsetxattr(file, "user.a", "b", 1, 0); if (errno == EBADF) return errno; OK(flistxattr(file, NULL, 0)); return 0; }
static int is_locked(short kind) {
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = kind, .l_whence = SEEK_SET};
        int two = open(path, O_RDWR);
        if (two < 0 || fcntl(two, F_GETLK, &lock)) of_child(99);
        of_child(lock.l_type == F_UNLCK ? 1 : 0);
    }
    return ended(child) == 0;
}
WAY(by_fcntl_lock) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    OK(fcntl(file, F_SETLK, &lock));
    IS(is_locked(F_WRLCK));
    OK(pwrite(file, "0", 1, 0)); /* no lock of the library waits for it */
    return 0;
}
WAY(by_lockf) { lseek(file, 0, SEEK_SET); OK(lockf(file, F_TLOCK, 0)); IS(is_locked(F_WRLCK)); OK(lockf(file, F_ULOCK, 0)); IS(!is_locked(F_WRLCK)); return 0; }
WAY(by_ofd_lock) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -10};
    OK(fcntl(file, F_OFD_SETLK, &lock));
    int two = open(path, O_RDWR);
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
    OK(fcntl(two, F_OFD_GETLK, &lock));
    IS(lock.l_type == F_WRLCK && lock.l_start == 990 && lock.l_len == 0);
    OK(pwrite(file, "0", 1, 0));
    return 0;
}
WAY(by_flock) { int two = open(path, O_RDWR); OK(flock(file, LOCK_EX | LOCK_NB)); IS(flock(two, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK); return 0; }
WAY(locks_stay) { /* looking at a file must not drop the locks of this process */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    struct stat found;
    OK(fcntl(file, F_SETLK, &lock));
    int two = open(path, O_RDONLY);
    OK(two);
    OK(stat(path, &found));
    IS(is_locked(F_WRLCK));
    return 0;
}
WAY(syscall_locks_stay) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    int locked = syscall(SYS_fcntl, file, F_SETLK, &lock), two = open(path, O_RDONLY);
    OK(locked);
    OK(two);
    IS(is_locked(F_WRLCK));
    return 0;
}
WAY(lockf_stays) {
    OK(lseek(file, 0, SEEK_SET));
    OK(lockf(file, F_LOCK, 10));
    int two = open(path, O_RDONLY);
    OK(two);
    IS(is_locked(F_WRLCK));
    return 0;
}
WAY(by_ioctl) { int bytes; OK(ioctl(file, TIOCGWINSZ, &bytes)); return 0; }
WAY(by_poll) { struct pollfd one = {file, POLLIN, 0}; OK(poll(&one, 1, 0)); return one.revents & POLLNVAL ? EBADF : 0; }
WAY(by_epoll) { int set = epoll_create1(0); struct epoll_event event = {.events = EPOLLIN}; OK(epoll_ctl(set, EPOLL_CTL_ADD, file, &event)); return 0; }

/* --- descriptors that are files of records no longer --- */
static int reused(int file) { /* the number goes to a plain file, which is written as it is */
    int two = open("plain", O_RDWR | O_CREAT | O_TRUNC, 0600);
    OK(two);
    IS(two == file);
    IS(write(file, "plain", 5) == 5 && lseek(file, 0, SEEK_END) == 5 && pread(file, buffer, 9, 0) == 5);
    return memcmp(buffer, "plain", 5);
}
WAY(closed) { OK(close(file)); IS(write(file, "x", 1) == -1 && errno == EBADF); return reused(file); }
WAY(closed_by_range) { OK(close_range(file, ~0u, 0)); return reused(file); }
WAY(closed_by_closefrom) { closefrom(file); return reused(file); }
WAY(closed_by_syscall) { OK(syscall(SYS_close, file)); return reused(file); }
WAY(closed_by_syscall_range) { OK(syscall(SYS_close_range, file, ~0u, 0)); return reused(file); }
static int replaced(int file) { IS(write(file, "plain", 5) == 5 && pread(file, buffer, 9, 0) == 5); return memcmp(buffer, "plain", 5); }
static int plain(void) { return open("plain", O_RDWR | O_CREAT | O_TRUNC, 0600); }
WAY(replaced_by_dup2) { OK(dup2(plain(), file)); return replaced(file); }
WAY(replaced_by_dup3) { OK(dup3(plain(), file, 0)); return replaced(file); }
WAY(replaced_by_syscall) { OK(syscall(SYS_dup3, plain(), file, 0)); return replaced(file); }
WAY(replaced_by_freopen) { /* a stream whose number a file of records had before */
    close(file);
    FILE *stream = fopen("plain", "w+");
    IS(stream && fileno(stream) == file && fputs("plain", stream) >= 0 && fclose(stream) == 0);
    return reused(file);
}
WAY(many_in_turn) { for (int turn = 0; turn < 500; turn++) { int two = open(path, O_RDWR); OK(two); IS(two < file + 2); OK(close(two)); } return 0; }

/* --- several at a time, with files of their own --- */
#define RECORD_BYTES 40
static void append(int file, char letter, int records) {
    char bytes[RECORD_BYTES];
    memset(bytes, letter, sizeof bytes);
    while (records--) if (write(file, bytes, sizeof bytes) != sizeof bytes) _exit(97);
}
static int whole_records(int file, int records) {
    char bytes[RECORD_BYTES];
    int found = 0;
    for (long at = 0; pread(file, bytes, sizeof bytes, at) == sizeof bytes; at += sizeof bytes, found++)
        for (int byte = 1; byte < RECORD_BYTES; byte++) IS(bytes[byte] == bytes[0]);
    IS(found == records && lseek(file, 0, SEEK_END) == records * RECORD_BYTES);
    return unlink("many-bin.1") ? errno : 0;
}
WAY(parent_and_children) {
    int many = open("many-bin.1", O_RDWR | O_CREAT | O_APPEND, 0600);
    OK(many);
    pid_t children[3];
    for (int at = 0; at < 3; at++) if ((children[at] = fork()) == 0) { append(many, 'a' + at, 300); _exit(0); }
    append(many, 'p', 300);
    for (int at = 0; at < 3; at++) IS(ended(children[at]) == 0);
    return whole_records(many, 1200);
}
static int shared_file, forks_are_done;
static long appended_by[3];
static void *appends(void *number) {
    while (!__atomic_load_n(&forks_are_done, __ATOMIC_RELAXED)) {
        append(shared_file, 'a' + (long)number, 1);
        appended_by[(long)number]++;
    }
    return NULL;
}
WAY(threads_and_forks) { /* a child must not wait for a lock of a thread that it does not have */
    shared_file = open("many-bin.1", O_RDWR | O_CREAT | O_APPEND, 0600);
    OK(shared_file);
    pthread_t threads[3];
    for (long at = 0; at < 3; at++) IS(pthread_create(&threads[at], NULL, appends, (void *)at) == 0);
    for (int turn = 0; turn < 40; turn++) {
        pid_t child = fork();
        if (child == 0) { alarm(20); append(shared_file, 'f', 1); _exit(0); }
        IS(ended(child) == 0);
    }
    __atomic_store_n(&forks_are_done, 1, __ATOMIC_RELAXED);
    for (int at = 0; at < 3; at++) IS(pthread_join(threads[at], NULL) == 0);
    return whole_records(shared_file, 40 + appended_by[0] + appended_by[1] + appended_by[2]);
}
WAY(read_before_written) { /* whoever has an empty file open finds what others write to it */
    int two = open("many-bin.1", O_RDONLY | O_CREAT, 0600), three = open("many-bin.1", O_WRONLY | O_APPEND);
    struct stat found;
    OK(two);
    IS(read(two, buffer, 10) == 0 && fstat(two, &found) == 0 && found.st_size == 0);
    IS(write(three, "LOG", 3) == 3 && read(two, buffer, 10) == 3 && !memcmp(buffer, "LOG", 3));
    IS(fstat(two, &found) == 0 && found.st_size == 3);
    return unlink("many-bin.1") ? errno : 0;
}
WAY(truncated_when_opened) {
    OK(close(open("many-bin.1", O_WRONLY | O_CREAT | O_EXCL, 0600)));
    IS(open("many-bin.1", O_WRONLY | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
    int two = open("many-bin.1", O_RDWR);
    IS(write(two, "LOG", 3) == 3);
    int three = open("many-bin.1", O_RDWR | O_TRUNC);
    IS(lseek(two, 0, SEEK_END) == 0 && write(three, "more", 4) == 4 && pread(two, buffer, 10, 0) == 4);
    return unlink("many-bin.1") ? errno : 0;
}
static int base_again(int file) { /* a file that was emptied and written by two descriptors has its content again */
    OK(lseek(file, 0, SEEK_SET));
    IS(read(file, buffer, 100) == 6 && !memcmp(buffer, "onetwo", 6));
    OK(ftruncate(file, 0));
    for (int ten = 0; ten < 100; ten++) OK(pwrite(file, "0123456789", 10, ten * 10));
    return 0;
}
WAY(truncated_and_opened_again) {
    int one = open(path, O_WRONLY | O_TRUNC), two = open(path, O_WRONLY | O_APPEND);
    IS(write(one, "one", 3) == 3 && write(two, "two", 3) == 3 && lseek(one, 0, SEEK_CUR) == 3);
    return base_again(file);
}
WAY(truncated_by_stream) {
    FILE *one = fopen(path, "w");
    if (!one) return errno;
    int two = open(path, O_WRONLY | O_APPEND);
    IS(fputs("one", one) >= 0 && fclose(one) == 0 && write(two, "two", 3) == 3);
    return base_again(file);
}
WAY(by_mkostemp) {
    char name[] = "many-bin.7XXXXXX";
    int two = mkostemp(name, O_APPEND | O_CLOEXEC);
    OK(two);
    printf("%#x %#x\n", fcntl(two, F_GETFL), fcntl(two, F_GETFD));
    append(two, 'm', 200);
    IS(rename(name, "many-bin.1") == 0);
    return whole_records(two, 200);
}

/* --- opening as asked --- */
WAY(flags_of_new_files) {
    static const int more[] = {0, O_APPEND, O_DIRECT, O_SYNC, O_DSYNC, O_NONBLOCK, O_NOATIME, O_CLOEXEC, O_APPEND | O_CLOEXEC | O_SYNC, O_EXCL, O_NOFOLLOW, O_TRUNC};
    for (int access = O_RDONLY; access <= O_RDWR; access++)
        for (size_t at = 0; at < sizeof more / sizeof *more; at++) {
            int two = open("many-bin.1", access | O_CREAT | more[at], 0600);
            printf("%#x: %d %#x %#x\n", access | more[at], two, fcntl(two, F_GETFL), fcntl(two, F_GETFD));
            OK(two);
            close(two);
            unlink("many-bin.1");
        }
    return 0;
}
static void say_flags(const char *name, int file) {
    if (file < 0) printf("%s: error %d\n", name, errno);
    else { printf("%s: %d %#x %#x\n", name, file, fcntl(file, F_GETFL), fcntl(file, F_GETFD)); close(file); }
}
WAY(flags) {
    static const int more[] = {0, O_APPEND, O_DIRECT, O_SYNC, O_DSYNC, O_NONBLOCK, O_NOATIME, O_CLOEXEC, O_APPEND | O_CLOEXEC | O_SYNC, O_PATH, O_NOFOLLOW, O_CREAT, O_CREAT | O_EXCL, O_NOCTTY, O_ASYNC, O_DIRECTORY};
    for (int access = O_RDONLY; access <= O_RDWR; access++)
        for (size_t at = 0; at < sizeof more / sizeof *more; at++) {
            int asked = access | more[at];
            struct open_how how = {.flags = asked, .mode = asked & O_CREAT ? 0600 : 0};
            printf("%#x\n", asked);
            say_flags("open", open(path, asked, 0600));
            say_flags("openat", openat(AT_FDCWD, path, asked, 0600));
            say_flags("syscall", syscall(SYS_openat, AT_FDCWD, path, asked, 0600));
            say_flags("openat2", syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
        }
    say_flags("creat", creat("new", 0600));
    say_flags("absent", open("absent-bin.1", O_RDWR));
    say_flags("O_TMPFILE", open(".", O_TMPFILE | O_RDWR, 0600));
    say_flags("a folder", open(".", O_RDONLY));
    for (const char **mode = (const char *[]){"r", "r+", "a", "a+", "re", NULL}; *mode; mode++) {
        FILE *stream = fopen(path, *mode);
        printf("%s: %d\n", *mode, stream ? fcntl(fileno(stream), F_GETFL) : -errno);
        if (stream) fclose(stream);
    }
    say_flags("O_TRUNC", open(path, O_WRONLY | O_TRUNC | O_APPEND));
    return 0;
}
WAY(written_base) { int two = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600); OK(two); for (int ten = 0; ten < 100; ten++) OK(write(two, "0123456789", 10)); return close(two) ? errno : 0; }
WAY(dump) { long got; lseek(file, 0, SEEK_SET); while ((got = read(file, buffer, sizeof buffer)) > 0) fwrite(buffer, 1, got, stdout); return got < 0 ? errno : 0; }

#define ENTRY(name) {#name, name},
static const struct { const char *name; int (*way)(int); } ways[] = {
#include "ways.list"
};

int main(int count, char **word, char **variables) {
    self = word[0]; path = word[1]; environment = variables;
    if (count > 3) return (strcmp(word[2], "child_writes") ? child_receives_from : child_writes_to)(atoi(word[3]));
    if (!strcmp(word[2], "written_base")) return written_base(-1);
    int file = open(path, O_RDWR);
    if (file < 0) { printf("%d\n", errno); return 0; }
    if (!strcmp(word[2], "dump")) return dump(file);
    lseek(file, 0, SEEK_END);
    for (size_t at = 0; at < sizeof ways / sizeof *ways; at++)
        if (!strcmp(word[2], ways[at].name)) { fprintf(stderr, "\n%d\n", ways[at].way(file)); return 0; }
    return 2;
}
