/*
 * A preloaded library that makes one operation on the files of a folder fail, as a disk that is full or broken does.
 *
 * FAILING_DISK_FOLDER names the folder and FAILING_DISK_CONTROL a file that both sides map: the process says there which
 * operation is to fail, and reads how many there were. Only Linux.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FILES_MAX 65536

struct control {
  _Atomic int64_t error;   /* the errno of a failure; 0: nothing fails */
  _Atomic int64_t at;      /* the first operation that fails, counted from 1 */
  _Atomic int64_t lasting; /* 1: all operations from there on fail */
  _Atomic int64_t partial; /* 1: a write that fails has written its first half, and says so */
  _Atomic int64_t count;   /* operations so far */
  _Atomic int64_t failed;  /* failures so far */
};

static struct control *control;
static const char *folder;

/* The file that an open descriptor was for: Node.js closes with a system call that nothing here sees, and the number is used again. */
struct identity {
  dev_t device;
  ino_t node; /* 0: not in the folder */
};
static struct identity watched[FILES_MAX];

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void prepare(void) {
  int (*real_open)(const char *, int, ...) = next("open");
  const char *path = getenv("FAILING_DISK_CONTROL");
  folder = getenv("FAILING_DISK_FOLDER");
  if (!path || !folder) return;
  int file = real_open(path, O_RDWR);
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) control = mapped;
}

static int is_inside(const char *path) { return folder && path && strncmp(path, folder, strlen(folder)) == 0; }

static void watch(int file, int inside) {
  struct stat status;
  if (file < 0 || file >= FILES_MAX) return;
  if (!inside || fstat(file, &status) != 0) {
    watched[file].node = 0;
    return;
  }
  watched[file].device = status.st_dev;
  watched[file].node = status.st_ino;
}

static int is_watched(int file) {
  struct stat status;
  if (file < 0 || file >= FILES_MAX || watched[file].node == 0) return 0;
  if (fstat(file, &status) != 0) return 0;
  return status.st_dev == watched[file].device && status.st_ino == watched[file].node;
}

/* Counts an operation; true when it is to fail. */
static int fails(void) {
  if (!control) return 0;
  int64_t number = ++control->count;
  if (control->error == 0 || number < control->at || (number > control->at && !control->lasting)) return 0;
  control->failed++;
  errno = (int)control->error;
  return 1;
}

#define OPEN(name)                                                    \
  int name(const char *path, int flags, ...) {                        \
    static int (*real)(const char *, int, ...);                       \
    if (!real) real = next(#name);                                    \
    va_list rest;                                                     \
    va_start(rest, flags);                                            \
    mode_t mode = va_arg(rest, mode_t);                               \
    va_end(rest);                                                     \
    int inside = is_inside(path);                                     \
    if (inside && fails()) return -1;                                 \
    int file = real(path, flags, mode);                               \
    watch(file, inside);                                              \
    return file;                                                      \
  }
OPEN(open)
OPEN(open64)

int close(int file) {
  static int (*real)(int);
  if (!real) real = next("close");
  watch(file, 0);
  return real(file);
}

#define PWRITE(name, offset_type)                                                     \
  ssize_t name(int file, const void *bytes, size_t size, offset_type at) {            \
    static ssize_t (*real)(int, const void *, size_t, offset_type);                   \
    if (!real) real = next(#name);                                                    \
    if (!is_watched(file) || !fails()) return real(file, bytes, size, at);            \
    return control->partial && size > 1 ? real(file, bytes, size / 2, at) : -1;       \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int file, const void *bytes, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = next("write");
  if (!is_watched(file) || !fails()) return real(file, bytes, size);
  return control->partial && size > 1 ? real(file, bytes, size / 2) : -1;
}

#define SYNC(name)                                          \
  int name(int file) {                                      \
    static int (*real)(int);                                \
    if (!real) real = next(#name);                          \
    return is_watched(file) && fails() ? -1 : real(file);   \
  }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, offset_type)                                 \
  int name(int file, offset_type size) {                            \
    static int (*real)(int, offset_type);                           \
    if (!real) real = next(#name);                                  \
    return is_watched(file) && fails() ? -1 : real(file, size);     \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  if (!real) real = next("rename");
  return is_inside(to) && fails() ? -1 : real(from, to);
}
