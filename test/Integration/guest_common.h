/* What the guest_*.c programs share: the package `guest` (gpt2-hf of the golden
 * data), its weights from a file or from memory, and a text of many steps whose
 * logits are kept. Any failure ends the program with a message and status 1.
 */
#include "guest.h"
#include "guest_tensors.h" /* guest_tensor_table: {name, rank, shape, floats} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 24, VOCAB = 257, CONTEXT = 128, TENSORS = sizeof guest_tensor_table / sizeof *guest_tensor_table };

#define CHECK(condition, ...)                                                                                          \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                  \
      fprintf(stderr, __VA_ARGS__);                                                                                    \
      fprintf(stderr, " (%s)\n", guest_last_error());                                                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static gptc_model *open_file(const char *path, const gptc_host *host) {
  gptc_open_params from = {.size = sizeof from, .weights_path = path, .host = host, .verify = 1};
  gptc_model *model = NULL;
  gptc_status status = guest_open(&from, &model);
  CHECK(status == GPTC_OK, "open: status %d", status);
  return model;
}

static gptc_session *open_session(gptc_model *model, int threads) {
  gptc_limits limits = {.size = sizeof limits, .sequences = 2, .threads = threads};
  gptc_session *session = NULL;
  gptc_status status = guest_session(model, &limits, &session);
  CHECK(status == GPTC_OK, "session: status %d", status);
  return session;
}

static gptc_status one_step(gptc_session *session, const int32_t *tokens, int32_t first, int32_t count, float *logits) {
  int32_t positions[CONTEXT], last = count - 1;
  for (int32_t i = 0; i < count; ++i)
    positions[i] = first + i;
  gptc_batch batch = {.count = count, .tokens = tokens, .positions = positions, .row_count = 1, .rows = &last};
  return guest_step(session, &batch, logits);
}

/* A prompt and steps - 1 tokens that follow; logits [steps][VOCAB]. After the
 * context's end the text goes on behind the prompt. */
static inline void text(gptc_session *session, int seed, int steps, float *logits) {
  int32_t tokens[PROMPT];
  for (int i = 0; i < PROMPT; ++i)
    tokens[i] = (seed * 37 + i * i * 11 + 5) % VOCAB;
  for (int s = 0; s < steps; ++s) {
    int32_t next = (seed * 101 + s * 13) % VOCAB;
    int32_t position = PROMPT + (s - 1) % (CONTEXT - PROMPT);
    gptc_status status = s ? one_step(session, &next, position, 1, logits + (size_t)s * VOCAB)
                           : one_step(session, tokens, 0, PROMPT, logits);
    CHECK(status == GPTC_OK, "seed %d, step %d: status %d", seed, s, status);
  }
}

static inline float *rows(int steps) {
  float *logits = malloc((size_t)steps * VOCAB * sizeof *logits);
  CHECK(logits, "no memory");
  return memset(logits, 0xff, (size_t)steps * VOCAB * sizeof *logits);
}

static inline int equal(const float *a, const float *b, int steps) {
  return !memcmp(a, b, (size_t)steps * VOCAB * sizeof *a);
}
