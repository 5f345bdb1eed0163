/*
 * file_systems.c: a library for LD_PRELOAD. With it, a folder answers as another file system does.
 *
 * YOKE_TEST_FILE_SYSTEM is a name of the table. YOKE_TEST_FOLDER is the folder, an absolute path without links. The
 * library changes only calls that the file system refuses, or does otherwise than POSIX. All other calls go to the
 * real file system.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

struct file_system {
    const char *name;
    int sync_folder, sync_file, sync_range; /* the errno of each call; 0: it works */
    int chmod, lock, locked;                /* locked: errno of flock while another has the lock */
    int exchange, rename, rename_folder;
    int unlink, map;
    int rename_open; /* a folder of which a file is open */
    int lower;       /* a folder that is there when the process starts is renamed */
    int keeps_open; /* an open or mapped file, when removed, stays in the folder under another name */
    int ignores_case; /* names with only a different case are equal */
    int sequential;   /* errno of a write that is not at the end of the file */
};

/*
 * Sources of the entries. The kernel's folders are those of Linux 6.x.
 *
 * cifs, a server of Windows: fsync of a folder was EINVAL before Linux 4.17 ("e.g. Linux+CIFS" in Dovecot's
 *   fdatasync-path.c). chmod EPERM where the mount has another uid (mount.cifs(8), "uid"). RENAME_EXCHANGE EINVAL
 *   (fs/smb/client/inode.c, cifs_rename2: flags but RENAME_NOREPLACE). A lock held by another process is EACCES:
 *   SMB's locks are mandatory (flock(2), "CIFS details"). Folders with open files are not renamed:
 *   STATUS_ACCESS_DENIED is EACCES (fs/smb/client/smb2maperror.c). Names keep their case; lookups ignore the case.
 * nfs, version 3 without lockd: flock is fcntl's (flock(2), "NFS details") and ENOLCK without a lock manager. Open
 *   files, when removed, stay as .nfs… (fs/nfs/unlink.c, nfs_sillyrename). RENAME_EXCHANGE EINVAL (fs/nfs/dir.c,
 *   nfs_rename).
 * lustre without -o flock: flock ENOSYS (mount.lustre(8), "noflock"); RENAME_EXCHANGE EINVAL (lustre/llite/namei.c).
 * gpfs: RENAME_EXCHANGE EINVAL: the documentation of GPFS lists none of rename2's flags.
 * cephfs: RENAME_EXCHANGE EINVAL (fs/ceph/dir.c, ceph_rename).
 * bucket, a flat bucket mounted by gcsfuse: a folder is not renamed, EMFILE beyond --rename-dir-limit, default 0
 *   (internal/fs/fs.go and docs/semantics.md), nor with open files, ENOTSUP; RENAME_EXCHANGE EINVAL (fs/fuse/dir.c,
 *   for servers without rename2); mmap ENODEV of FUSE with direct I/O (fs/fuse/file.c, before Linux 6.6 and for
 *   MAP_SHARED).
 * bucket-sequential, a bucket mounted by mountpoint-s3: rename ENOSYS, of folders EPERM, unlink and chmod EPERM,
 *   writes out of order EINVAL (mountpoint-s3-fs/src/fs/error.rs, doc/SEMANTICS.md, doc/TROUBLESHOOTING.md).
 * bucket-deletes: bucket-sequential, mounted with --allow-delete and --allow-overwrite.
 * sshfs: RENAME_EXCHANGE EINVAL (sshfs.c, sshfs_rename); if a server has no fsync, FUSE answers 0 (fs/fuse/file.c).
 *   Open files, when removed, stay as .fuse_hidden… (mount.fuse3(8), "hard_remove").
 * 9p, in QEMU with security_model=none: chmod EPERM for users other than root on the host machine (qemu(1),
 *   "-fsdev"); RENAME_EXCHANGE EINVAL (fs/9p/vfs_inode.c); mmap ENODEV with cache=none in kernels before mmap
 *   support (Documentation/filesystems/9p.rst, "cache").
 * virtiofs: passes all of these to the host machine; flock is the virtual machine's own without "-o flock"
 *   (virtiofsd's README).
 * exfat: chmod EPERM where the mount has another uid; for the owner, chmod ignores bits without a place in exFAT
 *   (fs/exfat/file.c, exfat_setattr). RENAME_EXCHANGE EINVAL (fs/exfat/namei.c); lookups of names ignore the case.
 * overlay: folders of a lower layer are not renamed, EXDEV without redirect_dir
 *   (Documentation/filesystems/overlayfs.rst, "renaming directories").
 * tmpfs: supports all of them (mm/shmem.c, shmem_rename2).
 * synthetic: supports only the calls needed for saving a state.
 */
static const struct file_system table[] = {
    {.name = "cifs",
     .sync_folder = EINVAL,
     .chmod = EPERM,
     .locked = EACCES,
     .exchange = EINVAL,
     .rename_open = EACCES,
     .ignores_case = 1},
    {.name = "nfs", .lock = ENOLCK, .exchange = EINVAL, .keeps_open = 1},
    {.name = "lustre", .lock = ENOSYS, .exchange = EINVAL},
    {.name = "gpfs", .exchange = EINVAL},
    {.name = "cephfs", .exchange = EINVAL},
    {.name = "bucket", .exchange = EINVAL, .rename_folder = EMFILE, .map = ENODEV},
    {.name = "bucket-sequential",
     .chmod = EPERM,
     .exchange = EINVAL,
     .rename = ENOSYS,
     .rename_folder = EPERM,
     .unlink = EPERM,
     .sequential = EINVAL},
    {.name = "bucket-deletes",
     .chmod = EPERM,
     .exchange = EINVAL,
     .rename = ENOSYS,
     .rename_folder = EPERM},
    {.name = "sshfs", .exchange = EINVAL, .keeps_open = 1},
    {.name = "9p", .chmod = EPERM, .exchange = EINVAL, .map = ENODEV},
    {.name = "virtiofs"},
    {.name = "exfat", .chmod = EPERM, .exchange = EINVAL, .ignores_case = 1},
    {.name = "overlay", .lower = EXDEV},
    {.name = "tmpfs"},
    {.name = "synthetic",
     .sync_folder = ENOTSUP,
     .sync_file = ENOSYS,
     .sync_range = ENOSYS,
     .chmod = ENOSYS,
     .lock = EOPNOTSUPP,
     .exchange = ENOSYS,
     .rename_folder = EXDEV,
     .map = ENODEV},
};

static const struct file_system *chosen;
static const char *top;
static ino_t lower_folders[64];
static size_t lower_count;

static int refuse(int error)
{
    errno = error;
    return -1;
}

static void find_lower(const char *path)
{
    char name[4096];
    DIR *entries = opendir(path);
    const struct dirent *entry;
    struct stat about;
    while (entries && (entry = readdir(entries))) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || stat(name, &about) != 0 || !S_ISDIR(about.st_mode)) continue;
        if (lower_count < 64) lower_folders[lower_count++] = about.st_ino;
        find_lower(name);
    }
    if (entries) closedir(entries);
}

__attribute__((constructor)) static void choose(void)
{
    const char *name = getenv("YOKE_TEST_FILE_SYSTEM");
    top = getenv("YOKE_TEST_FOLDER");
    for (size_t i = 0; name && top && i < sizeof table / sizeof *table; ++i)
        if (strcmp(table[i].name, name) == 0) chosen = &table[i];
    if (name && !chosen) {
        fprintf(stderr, "file_systems.c: there is no file system '%s'\n", name);
        _exit(99);
    }
    if (chosen && chosen->lower) find_lower(top);
}

static int is_below(const char *path)
{
    const size_t length = strlen(top);
    return strncmp(path, top, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* Tells whether the file is in the folder; gets its path. */
static int path_of(int file, char path[4096])
{
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = chosen ? readlink(link, path, 4095) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int path_at(int folder, const char *name, char path[4096])
{
    char above[4096];
    if (!chosen) return 0;
    if (name[0] == '/') {
        snprintf(path, 4096, "%s", name);
        return is_below(path);
    }
    if (folder == AT_FDCWD ? !getcwd(above, sizeof above) || !is_below(above)
                           : !path_of(folder, above))
        return 0;
    return snprintf(path, 4096, "%s/%s", above, name) < 4096;
}

static int is_folder(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Tells whether this process has a file at the path, or below it, open or mapped. */
static int is_open(const char *path)
{
    char line[8192], name[4096];
    const size_t length = strlen(path);
    int found = 0;
    for (int file = 3; file < 256 && !found; ++file)
        if (path_of(file, name) && !is_folder(name))
            found = strncmp(name, path, length) == 0 && (name[length] == '/' || name[length] == 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        const char *at = strstr(line, path);
        found = at && (at[length] == '/' || at[length] == '\n');
    }
    if (maps) fclose(maps);
    return found;
}

/* Tells whether the folder has another entry with the name in a different case. */
static int has_other_case(const char *path)
{
    char folder[4096];
    const char *name = strrchr(path, '/') + 1;
    const struct dirent *entry;
    int found = 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    DIR *entries = opendir(folder);
    while (entries && !found && (entry = readdir(entries)))
        found = strcasecmp(entry->d_name, name) == 0 && strcmp(entry->d_name, name) != 0;
    if (entries) closedir(entries);
    return found;
}

static int sync_error(int file)
{
    char path[4096];
    if (!path_of(file, path)) return 0;
    return is_folder(path) ? chosen->sync_folder : chosen->sync_file;
}

int fsync(int file)
{
    const int error = sync_error(file);
    return error ? refuse(error) : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    const int error = sync_error(file);
    return error ? refuse(error) : (int)syscall(SYS_fdatasync, file);
}

int sync_file_range(int file, off64_t from, off64_t bytes, unsigned flags)
{
    char path[4096];
    if (path_of(file, path) && chosen->sync_range) return refuse(chosen->sync_range);
    return (int)syscall(SYS_sync_file_range, file, from, bytes, flags);
}

int fchmod(int file, mode_t mode)
{
    char path[4096];
    if (path_of(file, path) && chosen->chmod) return refuse(chosen->chmod);
    return (int)syscall(SYS_fchmod, file, mode);
}

int flock(int file, int how)
{
    char path[4096];
    const int is_ours = path_of(file, path);
    if (is_ours && chosen->lock) return refuse(chosen->lock);
    const int result = (int)syscall(SYS_flock, file, how);
    if (result != 0 && errno == EWOULDBLOCK && is_ours && chosen->locked)
        return refuse(chosen->locked);
    return result;
}

static int is_lower(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0) return 0;
    for (size_t i = 0; i < lower_count; ++i)
        if (lower_folders[i] == about.st_ino) return 1;
    return 0;
}

static int rename_error(const char *path)
{
    const int moves_folder = is_folder(path);
    if (!moves_folder) return chosen->rename;
    if (chosen->rename_folder) return chosen->rename_folder;
    if (chosen->rename_open && is_open(path)) return chosen->rename_open;
    return chosen->lower && is_lower(path) ? chosen->lower : 0;
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    char path[4096], other[4096];
    if (path_at(from_folder, from, path) && path_at(to_folder, to, other)) {
        const int is_exchange = (flags & RENAME_EXCHANGE) != 0;
        int error = is_exchange ? chosen->exchange : 0;
        if (!error) error = rename_error(path);
        if (!error && is_exchange) error = rename_error(other);
        if (error) return refuse(error);
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int folder, const char *name, int flags)
{
    static int kept;
    char path[4096], silly[4200];
    if (path_at(folder, name, path) && !(flags & AT_REMOVEDIR) && !is_folder(path)) {
        if (chosen->unlink) return refuse(chosen->unlink);
        if (chosen->keeps_open && is_open(path)) {
            const int length = (int)(strrchr(path, '/') - path);
            snprintf(silly, sizeof silly, "%.*s/.nfs%016d", length, path, ++kept);
            return (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, silly, 0);
        }
    }
    return (int)syscall(SYS_unlinkat, folder, name, flags);
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

static int open_at(int folder, const char *name, int flags, mode_t mode)
{
    char path[4096];
    if ((flags & O_CREAT) && (flags & O_EXCL) && path_at(folder, name, path) &&
        chosen->ignores_case && has_other_case(path))
        return refuse(EEXIST);
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_at(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...) __attribute__((alias("openat")));

ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t to)
{
    char path[4096];
    struct stat about;
    if (path_of(file, path) && chosen->sequential && fstat(file, &about) == 0 &&
        about.st_size != to)
        return refuse(chosen->sequential);
    return syscall(SYS_pwrite64, file, from, bytes, to);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t to)
    __attribute__((alias("pwrite64")));

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t from)
{
    char path[4096];
    if (!(flags & MAP_ANONYMOUS) && chosen && chosen->map && path_of(file, path)) {
        errno = chosen->map;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, from);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from)
    __attribute__((alias("mmap64")));
