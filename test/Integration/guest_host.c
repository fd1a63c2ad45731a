/* The host's own weights, memory and threads: the bits of the package's own,
 * all memory given back, none taken while stepping, and the package's own
 * allocator unused.
 *
 *   guest_host WEIGHTS TENSORS
 */
#include "guest_common.h"
#include "guest_memory.h"
#include <pthread.h>

enum { STEPS = 40, POOL = 3 };

struct host {
  int64_t blocks, bytes, allocated, jobs, parts;
  int stepping, fail_after;
};

static void *host_allocate(void *user, size_t bytes, size_t alignment) {
  struct host *host = user;
  CHECK(!host->stepping, "%zu bytes were asked for while stepping", bytes);
  if (host->fail_after >= 0 && host->fail_after-- == 0)
    return NULL;
  /* What is not asked to be zero must not be taken for it. */
  void *pointer = allowed_memalign(alignment, bytes);
  if (pointer)
    memset(pointer, 0xa5, bytes);
  ++host->blocks, ++host->allocated, host->bytes += (int64_t)bytes;
  return pointer;
}

static void host_release(void *user, void *pointer, size_t bytes) {
  struct host *host = user;
  CHECK(!host->stepping, "memory was released while stepping");
  CHECK(pointer, "null was released");
  --host->blocks, host->bytes -= (int64_t)bytes;
  allowed_free(pointer);
}

/* Three threads, each taking every third part, the last part first. */
struct job {
  void (*body)(void *, int32_t);
  void *data;
  int32_t n, first;
};

static void *some_parts(void *data) {
  struct job *job = data;
  for (int32_t i = job->n - 1 - job->first; i >= 0; i -= POOL)
    job->body(job->data, i);
  return NULL;
}

static void host_parallel(void *user, int32_t n, void (*body)(void *data, int32_t i), void *data) {
  struct host *host = user;
  pthread_t threads[POOL];
  struct job jobs[POOL];
  ++host->jobs, host->parts += n;
  for (int i = 0; i < POOL; ++i) {
    jobs[i] = (struct job){body, data, n, i};
    memory_allowed = 1; /* of pthread_create, not of the package */
    CHECK(!pthread_create(&threads[i], NULL, some_parts, &jobs[i]), "thread");
    memory_allowed = 0;
  }
  for (int i = 0; i < POOL; ++i)
    pthread_join(threads[i], NULL);
}

static gptc_tensor tensors[TENSORS];

static void read_tensors(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file, "%s", path);
  for (size_t i = 0; i < TENSORS; ++i) {
    size_t count = guest_tensor_table[i].count;
    tensors[i].name = guest_tensor_table[i].name;
    tensors[i].dtype = GPTC_F32;
    tensors[i].rank = guest_tensor_table[i].rank;
    memcpy(tensors[i].shape, guest_tensor_table[i].shape, sizeof tensors[i].shape);
    tensors[i].capacity_bytes = count * sizeof(float);
    tensors[i].data = malloc(count * sizeof(float));
    CHECK(tensors[i].data && fread(tensors[i].data, sizeof(float), count, file) == count, "%s", tensors[i].name);
  }
  fclose(file);
}

static void check_host(const char *path, const float *expected, int own_weights, int own_memory, int own_pool, int threads) {
  struct host state = {.fail_after = -1};
  gptc_host host = {.size = sizeof host, .user = &state};
  if (own_memory)
    host.allocate = host_allocate, host.release = host_release;
  if (own_pool)
    host.parallel = host_parallel;
  gptc_open_params from = {.size = sizeof from, .host = &host};
  if (own_weights)
    from.weights = tensors, from.weight_count = TENSORS;
  else
    from.weights_path = path;
  memory_forbidden = own_memory;
  gptc_model *model = NULL;
  gptc_status status = guest_open(&from, &model);
  CHECK(status == GPTC_OK, "status %d", status);
  memory_forbidden = 0;
  /* The package has its own copy. */
  if (own_weights)
    for (size_t i = 0; i < TENSORS; ++i)
      ((char *)tensors[i].data)[1] ^= 1;
  memset(&host, 0, sizeof host);
  memory_forbidden = own_memory && own_pool;
  gptc_session *session = open_session(model, threads);
  memory_forbidden = 0;
  float *logits = rows(STEPS);
  state.stepping = memory_forbidden = 1;
  text(session, 5, STEPS, logits);
  state.stepping = memory_forbidden = 0;
  CHECK(equal(expected, logits, STEPS), "weights %d, memory %d, pool %d, threads %d", own_weights, own_memory, own_pool, threads);
  CHECK(!own_memory || state.allocated >= 3, "%lld blocks", (long long)state.allocated);
  CHECK(own_pool && threads > 1 ? state.jobs > STEPS && state.parts == state.jobs * threads : !state.jobs, "%lld jobs, %lld parts",
        (long long)state.jobs, (long long)state.parts);
  memory_forbidden = own_memory && own_pool;
  guest_close(session);
  guest_close(model);
  memory_forbidden = 0;
  CHECK(!state.blocks && !state.bytes, "%lld blocks of %lld bytes were kept", (long long)state.blocks, (long long)state.bytes);
  if (own_weights)
    for (size_t i = 0; i < TENSORS; ++i)
      ((char *)tensors[i].data)[1] ^= 1;
  free(logits);
}

/* The host's memory ends at every allocation in turn: a status, all given back. */
static void check_no_memory(int threads) {
  struct host state = {0};
  gptc_host host = {.size = sizeof host, .user = &state, .allocate = host_allocate, .release = host_release};
  gptc_open_params from = {.size = sizeof from, .weights = tensors, .weight_count = TENSORS, .host = &host};
  gptc_limits limits = {.size = sizeof limits, .threads = threads};
  for (int n = 0;; ++n) {
    CHECK(n < 100, "it never succeeds");
    state.fail_after = n;
    gptc_model *model = NULL;
    gptc_session *session = NULL;
    gptc_status status = guest_open(&from, &model);
    if (status == GPTC_OK)
      status = guest_session(model, &limits, &session);
    CHECK(status == GPTC_OK || (status == GPTC_NO_MEMORY && *guest_last_error()), "status %d", status);
    CHECK(status == GPTC_OK || !session, "a session after a failure");
    guest_close(session);
    guest_close(model);
    CHECK(!state.blocks && !state.bytes, "allocation %d fails: %lld blocks kept", n, (long long)state.blocks);
    CHECK(status != GPTC_OK || n >= 3, "%d allocations", n);
    if (status == GPTC_OK)
      break;
  }
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  read_tensors(argv[2]);
  float *expected = rows(STEPS);
  gptc_model *model = open_file(argv[1], NULL);
  gptc_session *session = open_session(model, 1);
  text(session, 5, STEPS, expected);
  guest_close(session);
  guest_close(model);
  for (int mask = 0; mask < 8; ++mask)
    for (int threads = 1; threads <= 5; threads += 2)
      check_host(argv[1], expected, mask & 1, mask >> 1 & 1, mask >> 2 & 1, threads);
  check_no_memory(1);
  check_no_memory(2);
  return 0;
}
