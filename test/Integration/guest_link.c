/* Several packages in one program, linked (-DLINKED) or loaded by dlopen with
 * RTLD_GLOBAL. Writes the last row of logits of each, three times, the packages
 * taking turns. C99 and C++17.
 *
 *   guest_link WEIGHTS WEIGHTS WEIGHTS [LIBRARY LIBRARY LIBRARY]
 */
#include "one.h"
#include "same.h"
#include "two.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { packages = 3, prompt = 5, rounds = 3 };

static int failed(const char *what, const char *message) {
  fprintf(stderr, "%s: %s\n", what, message);
  return 1;
}

int main(int argc, char **argv) {
  const gptc_api *apis[packages];
  gptc_model *models[packages];
  gptc_session *sessions[packages];
  int32_t tokens[prompt] = {5, 4, 3, 2, 1}, positions[prompt], last;
  int p, round, i;
#ifdef LINKED
  if (argc != 1 + packages)
    return 2;
  apis[0] = one_api();
  apis[1] = two_api();
  apis[2] = same_api();
#else
  static const char *const names[packages] = {"one_api", "two_api", "same_api"};
  if (argc != 1 + 2 * packages)
    return 2;
  for (p = 0; p < packages; ++p) {
    const gptc_api *(*get)(void);
    void *library = dlopen(argv[1 + packages + p], RTLD_NOW | RTLD_GLOBAL), *symbol;
    if (!library || !(symbol = dlsym(library, names[p])))
      return failed("dlopen", dlerror());
    memcpy(&get, &symbol, sizeof get);
    apis[p] = get();
  }
#endif
  for (p = 0; p < packages; ++p) {
    gptc_open_params from;
    gptc_limits limits;
    memset(&from, 0, sizeof from);
    memset(&limits, 0, sizeof limits);
    from.size = sizeof from;
    from.weights_path = argv[1 + p];
    limits.size = sizeof limits;
    limits.threads = 2;
    if (apis[p]->open(&from, &models[p]) || apis[p]->session(models[p], &limits, &sessions[p]))
      return failed("open", apis[p]->last_error());
  }
  for (round = 0; round < rounds; ++round)
    for (p = 0; p < packages; ++p) {
      int64_t vocab = apis[p]->info()->vocab;
      float *logits = (float *)malloc((size_t)vocab * sizeof *logits);
      gptc_batch batch;
      memset(&batch, 0, sizeof batch);
      /* The prompt, then one token a round. */
      batch.count = round ? 1 : prompt;
      last = (int32_t)batch.count - 1;
      for (i = 0; i < prompt; ++i)
        positions[i] = i + (round ? prompt + round - 1 : 0);
      batch.tokens = tokens;
      batch.positions = positions;
      batch.row_count = 1;
      batch.rows = &last;
      if (!logits || apis[p]->step(sessions[p], &batch, logits))
        return failed("step", apis[p]->last_error());
      fwrite(logits, sizeof *logits, (size_t)vocab, stdout);
      free(logits);
    }
  for (p = 0; p < packages; ++p) {
    apis[p]->close(sessions[p]);
    apis[p]->close(models[p]);
  }
  return 0;
}
