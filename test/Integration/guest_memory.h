/* The allocator of the whole program (C library included), which ends it while
 * memory_forbidden is set: what must not allocate is caught at its first try.
 * memory_allowed lets this thread off; glibc only.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int memory_forbidden;
static __thread int memory_allowed;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);

static void memory_check(const char *name) {
  if (!memory_forbidden || memory_allowed)
    return;
  const char text[] = " was called where nothing may be allocated\n";
  if (write(2, name, __builtin_strlen(name)) < 0 || write(2, text, sizeof text - 1) < 0)
    _exit(98);
  _exit(97);
}

void *malloc(size_t bytes) {
  memory_check("malloc");
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  memory_check("calloc");
  return __libc_calloc(count, bytes);
}
void *realloc(void *pointer, size_t bytes) {
  memory_check("realloc");
  return __libc_realloc(pointer, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  memory_check("memalign");
  return __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  memory_check("aligned_alloc");
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
  memory_check("posix_memalign");
  *pointer = __libc_memalign(alignment, bytes);
  return *pointer ? 0 : ENOMEM;
}
void free(void *pointer) {
  if (pointer)
    memory_check("free");
  __libc_free(pointer);
}

static inline void *allowed_memalign(size_t alignment, size_t bytes) {
  return __libc_memalign(alignment, bytes);
}
static inline void allowed_free(void *pointer) { __libc_free(pointer); }

/* Files may be mapped. */
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (file < 0)
    memory_check("mmap");
  return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
