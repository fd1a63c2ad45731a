/* Prints COUNT tokens that follow the given ones, the likeliest first choice at every step.
 *
 *   cc generate.c -I kernels kernels/libgpt2.a -o generate
 *   ./generate kernels/gpt2.weights COUNT TOKEN...
 */
#include "gpt2.h"
#include <stdio.h>
#include <stdlib.h>

static int failed(void) {
  fprintf(stderr, "%s\n", gpt2_last_error());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4)
    return fprintf(stderr, "usage: generate WEIGHTS COUNT TOKEN...\n"), 2;
  gptc_open_params from = {.size = sizeof from, .weights_path = argv[1]};
  gptc_model *model;
  if (gpt2_open(&from, &model))
    return failed();
  gptc_limits limits = {.size = sizeof limits, .rows = 1};
  gptc_session *session;
  if (gpt2_session(model, &limits, &session))
    return failed();

  int64_t vocab = gpt2_info()->vocab, count = argc - 3;
  int32_t *tokens = malloc(count * sizeof *tokens), *positions = malloc(count * sizeof *positions);
  float *logits = malloc(vocab * sizeof *logits);
  for (int32_t i = 0; i < count; ++i)
    tokens[i] = atoi(argv[3 + i]), positions[i] = i;
  for (int left = atoi(argv[2]); left > 0; --left) {
    int32_t last = count - 1, best = 0;
    gptc_batch batch = {.count = count, .tokens = tokens, .positions = positions, .row_count = 1, .rows = &last};
    if (gpt2_step(session, &batch, logits))
      return failed();
    for (int32_t i = 1; i < vocab; ++i)
      best = logits[i] > logits[best] ? i : best;
    printf(left > 1 ? "%d," : "%d\n", best);
    positions[0] = positions[last] + 1; /* from here on, one token a step */
    tokens[0] = best;
    count = 1;
  }
  gpt2_close(session);
  gpt2_close(model);
  return 0;
}
