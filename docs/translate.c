/* Prints COUNT target tokens for the given source tokens, the likeliest at every step (The Annotated Transformer).
 *
 *   cc translate.c -I kernels kernels/libannotated.a -o translate
 *   ./translate kernels/annotated.weights COUNT START PAD SOURCE...
 */
#include "annotated.h"
#include <stdio.h>
#include <stdlib.h>

static int failed(void) {
  fprintf(stderr, "%s\n", annotated_last_error());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 6)
    return fprintf(stderr, "usage: translate WEIGHTS COUNT START PAD SOURCE...\n"), 2;
  gptc_open_params from = {.size = sizeof from, .weights_path = argv[1]};
  gptc_model *model;
  if (annotated_open(&from, &model))
    return failed();
  gptc_limits limits = {.size = sizeof limits};
  gptc_session *session;
  if (annotated_session(model, &limits, &session))
    return failed();

  int64_t length = argc - 5, count = atoi(argv[2]);
  int32_t *source = malloc(length * sizeof *source), *mask = malloc(length * sizeof *mask);
  int32_t *target = malloc((count + 1) * sizeof *target);
  for (int64_t i = 0; i < length; ++i) {
    source[i] = atoi(argv[5 + i]);
    mask[i] = source[i] != atoi(argv[4]); /* a boolean is an i32 */
  }
  target[0] = atoi(argv[3]);

  /* Once: the memory of the source, [length, width]. Without data, run tells the shape. */
  gptc_tensor encode[] = {{"src", GPTC_I32, 1, {length}, source, length * sizeof *source},
                          {"src_mask", GPTC_I32, 1, {length}, mask, length * sizeof *mask}};
  gptc_tensor memory = {.name = "memory"};
  if (annotated_run(session, "encode", encode, 2, &memory, 1))
    return failed();
  memory.capacity_bytes = memory.shape[0] * memory.shape[1] * sizeof(float);
  memory.data = malloc(memory.capacity_bytes);
  if (annotated_run(session, "encode", encode, 2, &memory, 1))
    return failed();

  /* For each token: the log-probabilities of what follows the last one, [1, vocabulary]. */
  gptc_tensor next = {.name = "log_probs"};
  for (int64_t i = 0; i < count; ++i) {
    int64_t tokens = i + 1;
    int32_t last = i, best = 0;
    gptc_tensor decode[] = {memory, encode[1],
                            {"tgt", GPTC_I32, 1, {tokens}, target, tokens * sizeof *target},
                            {"rows", GPTC_I32, 1, {1}, &last, sizeof last}};
    if (!next.data) {
      if (annotated_run(session, "decode", decode, 4, &next, 1))
        return failed();
      next.capacity_bytes = next.shape[1] * sizeof(float);
      next.data = malloc(next.capacity_bytes);
    }
    if (annotated_run(session, "decode", decode, 4, &next, 1))
      return failed();
    for (int32_t t = 1; t < next.shape[1]; ++t)
      best = ((float *)next.data)[t] > ((float *)next.data)[best] ? t : best;
    printf(i + 1 < count ? "%d," : "%d\n", best);
    target[tokens] = best;
  }
  annotated_close(session);
  annotated_close(model);
  return 0;
}
