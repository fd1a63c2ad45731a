/* Many threads and one package: 8 first calls at once, 8 sessions on one model
 * for 200 steps each, and one session that two threads want.
 *
 *   guest_threads WEIGHTS
 */
#include "guest_common.h"
#include <pthread.h>
#include <sched.h>

enum { THREADS = 8, STEPS = 200, FIRST_STEPS = 8, ROUNDS = 60 };

static pthread_barrier_t barrier;
static const char *weights;
static gptc_model *shared;

static void on_threads(int count, void *(*body)(void *), void **data) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, (unsigned)count);
  for (int i = 0; i < count; ++i)
    CHECK(!pthread_create(&threads[i], NULL, body, data[i]), "thread %d", i);
  for (int i = 0; i < count; ++i)
    pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
}

struct work {
  int seed, steps;
  float *logits;
};

static void *first_calls(void *data) {
  struct work *work = data;
  pthread_barrier_wait(&barrier);
  gptc_model *model = open_file(weights, NULL);
  gptc_session *session = open_session(model, 1 + work->seed % 2);
  text(session, work->seed, work->steps, work->logits);
  guest_close(session);
  guest_close(model);
  return NULL;
}

/* Between two kernels another thread runs: what they shared would mix. */
static void give_way(void *user, const gptc_event *event) {
  (void)user, (void)event;
  sched_yield();
}

static void *own_session(void *data) {
  struct work *work = data;
  gptc_session *session = open_session(shared, 1);
  if (work->seed % 2)
    CHECK(guest_observe(session, give_way, NULL) == GPTC_OK, "observe");
  pthread_barrier_wait(&barrier);
  text(session, work->seed, work->steps, work->logits);
  guest_close(session);
  return NULL;
}

static void compare(const struct work *works, const char *what) {
  for (int i = 0; i < THREADS; ++i) {
    float *serial = rows(works[i].steps);
    gptc_session *session = open_session(shared, 1);
    text(session, works[i].seed, works[i].steps, serial);
    guest_close(session);
    CHECK(equal(serial, works[i].logits, works[i].steps), "%s: thread %d differs from the serial run", what, i);
    free(serial);
    free(works[i].logits);
  }
}

static void many(void *(*body)(void *), int steps, struct work *works) {
  void *data[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    works[i] = (struct work){i, steps, rows(steps)};
    data[i] = &works[i];
  }
  on_threads(THREADS, body, data);
}

/* In the middle of a step, on another thread. */
struct nested {
  gptc_session *session;
  gptc_status status;
  char message[200];
  int done;
};

static void *other_thread(void *data) {
  struct nested *nested = data;
  float logits[VOCAB];
  int32_t token = 1;
  nested->status = one_step(nested->session, &token, 0, 1, logits);
  snprintf(nested->message, sizeof nested->message, "%s", guest_last_error());
  return NULL;
}

static void observer(void *user, const gptc_event *event) {
  (void)event;
  struct nested *nested = user;
  pthread_t thread;
  if (nested->done++)
    return;
  CHECK(!pthread_create(&thread, NULL, other_thread, nested), "thread");
  pthread_join(thread, NULL);
}

static void *race(void *data) {
  struct work *work = data;
  static gptc_session *session;
  if (work->seed == 0)
    session = open_session(shared, 2);
  pthread_barrier_wait(&barrier);
  int32_t tokens[PROMPT];
  for (int i = 0; i < PROMPT; ++i)
    tokens[i] = i;
  for (int done = 0, tries = 0; done < ROUNDS; ++tries) {
    gptc_status status = one_step(session, tokens, 0, PROMPT, work->logits + (size_t)done * VOCAB);
    CHECK(status == GPTC_OK || status == GPTC_BUSY, "status %d", status);
    CHECK(tries < 100000000, "always busy");
    done += status == GPTC_OK;
  }
  pthread_barrier_wait(&barrier);
  if (work->seed == 0)
    guest_close(session);
  return NULL;
}

static void busy(void) {
  float *before = rows(2), *after = rows(2);
  struct nested nested = {.session = open_session(shared, 1)};
  text(nested.session, 3, 2, before);
  CHECK(guest_observe(nested.session, observer, &nested) == GPTC_OK, "observe");
  text(nested.session, 3, 2, after);
  CHECK(nested.done && nested.status == GPTC_BUSY, "status %d: %s", nested.status, nested.message);
  CHECK(nested.message[0], "no message");
  CHECK(equal(before, after, 2), "the refused call changed the other's logits");
  guest_close(nested.session);

  struct work works[2] = {{0, ROUNDS, rows(ROUNDS)}, {1, ROUNDS, rows(ROUNDS)}};
  void *data[2] = {&works[0], &works[1]};
  on_threads(2, race, data);
  for (int i = 0; i < 2 * ROUNDS; ++i)
    CHECK(equal(works[i / ROUNDS].logits + (size_t)(i % ROUNDS) * VOCAB, works[0].logits, 1), "round %d", i);
  free(works[0].logits);
  free(works[1].logits);
  free(before);
  free(after);
}

int main(int argc, char **argv) {
  struct work first[THREADS], steps[THREADS];
  if (argc != 2)
    return 2;
  weights = argv[1];
  many(first_calls, FIRST_STEPS, first); /* nothing of the package has run before */
  shared = open_file(weights, NULL);
  compare(first, "first calls");
  many(own_session, STEPS, steps);
  compare(steps, "own sessions");
  busy();
  guest_close(shared);
  return 0;
}
