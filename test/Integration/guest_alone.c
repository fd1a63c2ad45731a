/* The host is left alone: after every call of a package, failed calls too, the
 * process is as it was (what `look` reads), whatever floating-point mode and
 * locale the host has set, and those change no bit. Nothing is allocated by a
 * step, and none by one that fails.
 *
 *   guest_alone WEIGHTS TENSORS LOCALE     LOCALE writes decimals with a comma
 */
#define _GNU_SOURCE
#include "guest_common.h"
#include "guest_memory.h"
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>

enum { STEPS = 12 };
extern char **environ;

/* What a guest could change. */
struct state {
  uint32_t mxcsr;
  uint16_t x87;
  struct {
    void *handler;
    unsigned long flags;
  } actions[65];
  sigset_t mask;
  char locale[400], folder[400];
  uint64_t environment, written[2];
  mode_t umask;
  int files;
};

static uint32_t get_mxcsr(void) { return __builtin_ia32_stmxcsr(); }
static void set_mxcsr(uint32_t value) { __builtin_ia32_ldmxcsr(value); }

static uint64_t hash(uint64_t seed, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    seed = (seed ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return seed;
}

static struct state look(uint32_t mxcsr) {
  struct state state;
  memset(&state, 0, sizeof state);
  state.mxcsr = mxcsr;
  __asm__ volatile("fnstcw %0" : "=m"(state.x87));
  for (int s = 1; s <= 64; ++s) {
    struct sigaction action;
    if (sigaction(s, NULL, &action))
      continue;
    state.actions[s].handler = (void *)action.sa_handler;
    state.actions[s].flags = (unsigned long)action.sa_flags;
  }
  sigprocmask(SIG_SETMASK, NULL, &state.mask);
  snprintf(state.locale, sizeof state.locale, "%s", setlocale(LC_ALL, NULL));
  CHECK(getcwd(state.folder, sizeof state.folder), "getcwd");
  state.environment = hash(1, &environ, sizeof environ);
  for (char **e = environ; *e; ++e)
    state.environment = hash(hash(state.environment, e, sizeof *e), *e, strlen(*e) + 1);
  fflush(stdout);
  for (int i = 0; i < 2; ++i)
    state.written[i] = (uint64_t)lseek(1 + i, 0, SEEK_CUR);
  umask(state.umask = umask(0));
  DIR *open_files = opendir("/proc/self/fd");
  while (readdir(open_files))
    ++state.files;
  closedir(open_files);
  return state;
}

static void compare(const struct state *a, const struct state *b, const char *call) {
#define SAME(what) CHECK(!memcmp(&a->what, &b->what, sizeof a->what), "%s changed " #what, call)
  CHECK(a->mxcsr == b->mxcsr, "%s changed MXCSR from %#x to %#x", call, a->mxcsr, b->mxcsr);
  SAME(x87);
  SAME(actions);
  SAME(mask);
  SAME(locale);
  SAME(folder);
  SAME(environment);
  SAME(written[0]);
  SAME(written[1]);
  SAME(umask);
  SAME(files);
}

/* Only the call itself runs in the host's mode: it may trap. */
static uint32_t mode = 0x1f80;
static int no_memory;
#define ALONE(call)                                                                                                    \
  do {                                                                                                                 \
    struct state before_ = look(mode);                                                                                 \
    memory_forbidden = no_memory;                                                                                      \
    set_mxcsr(mode);                                                                                                   \
    call;                                                                                                              \
    uint32_t mxcsr_ = get_mxcsr();                                                                                     \
    set_mxcsr(0x1f80);                                                                                                 \
    memory_forbidden = 0;                                                                                              \
    struct state after_ = look(mxcsr_);                                                                                \
    compare(&before_, &after_, #call);                                                                                 \
  } while (0)

static int events;
static void observer(void *user, const gptc_event *event) {
  (void)user;
  events += event->kernel != NULL;
  if (get_mxcsr() != mode)
    events = -1000000;
}

static gptc_tensor tensors[TENSORS];

/* Final norm scaled until logits are denormal numbers, which FTZ and DAZ lose. */
static void read_tensors(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file, "%s", path);
  for (size_t i = 0; i < TENSORS; ++i) {
    size_t count = guest_tensor_table[i].count;
    tensors[i].name = guest_tensor_table[i].name;
    tensors[i].rank = guest_tensor_table[i].rank;
    memcpy(tensors[i].shape, guest_tensor_table[i].shape, sizeof tensors[i].shape);
    float *data = tensors[i].data = malloc(count * sizeof(float));
    CHECK(data && fread(data, sizeof(float), count, file) == count, "%s", tensors[i].name);
    for (size_t j = 0; j < count && strstr(tensors[i].name, "ln_f."); ++j)
      data[j] *= 4e-39f;
  }
  fclose(file);
}

/* All functions, right and wrong; logits [STEPS][VOCAB]. */
static void all_calls(const char *path, int threads, float *logits) {
  gptc_open_params from = {.size = sizeof from, .weights_path = path, .verify = 1}, wrong = {.size = sizeof from, .weights_path = "nowhere"};
  if (!path)
    from.weights = tensors, from.weight_count = TENSORS;
  gptc_limits limits = {.size = sizeof limits, .sequences = 2, .threads = threads}, negative = {.size = sizeof limits, .tokens = -1};
  gptc_model *model = NULL, *none = NULL;
  gptc_session *session = NULL, *nothing = NULL;
  gptc_status status = GPTC_OK;
  int32_t tokens[PROMPT] = {0}, outside = VOCAB;
  for (int i = 0; i < PROMPT; ++i)
    tokens[i] = i * 7;
  ALONE(guest_info());
  ALONE(status = guest_open(&wrong, &none));
  CHECK(status == GPTC_BAD_WEIGHTS && !none, "status %d", status);
  ALONE(status = guest_open(&from, &model));
  CHECK(status == GPTC_OK, "status %d", status);
  ALONE(status = guest_session(model, &negative, &nothing));
  CHECK(status == GPTC_INVALID_ARGUMENT && !nothing, "status %d", status);
  ALONE(status = guest_session(model, &limits, &session));
  CHECK(status == GPTC_OK, "status %d", status);
  no_memory = 1;
  events = 0;
  for (int s = 0; s < STEPS; ++s) {
    ALONE(status = one_step(session, tokens, s ? PROMPT + s - 1 : 0, s ? 1 : PROMPT, logits + s * VOCAB));
    CHECK(status == GPTC_OK, "status %d", status);
    ALONE(status = one_step(session, &outside, 0, 1, logits));
    CHECK(status == GPTC_OUT_OF_RANGE, "status %d", status);
    if (s == 1)
      ALONE(guest_observe(session, observer, NULL));
    if (s == 4) {
      CHECK(events > 5, "%d events in the host's mode", events);
      ALONE(guest_observe(session, NULL, NULL));
      ALONE(status = guest_fork(session, 0, 1, 3));
      CHECK(status == GPTC_OK, "status %d", status);
    }
  }
  ALONE(status = guest_run(session, "nowhere", NULL, 0, NULL, 0));
  CHECK(status != GPTC_OK, "an unknown entry ran");
  ALONE(guest_last_error());
  no_memory = 0;
  ALONE(guest_close(session));
  ALONE(guest_close(model));
}

static void handler(int number) { (void)number; }

int main(int argc, char **argv) {
  /* flush to zero and denormals are zero; the four roundings; all traps; traps
   * and flags that the host has not yet looked at */
  const uint32_t modes[] = {0x1f80, 0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0x0000, 0x1fbf};
  if (argc != 4)
    return 2;
  read_tensors(argv[2]);
  signal(SIGUSR1, handler);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGFPE, SIG_DFL);
  setenv("GPTC_TEST", "1", 1);
  float *expected[2] = {rows(STEPS), rows(STEPS)}, *logits = rows(STEPS);
  for (int own = 0; own < 2; ++own)
    all_calls(own ? NULL : argv[1], 1, expected[own]);
  int denormal = 0;
  for (int i = 0; i < STEPS * VOCAB; ++i) {
    uint32_t bits;
    memcpy(&bits, &expected[1][i], sizeof bits);
    denormal += (bits & 0x7f800000) == 0 && (bits & 0x7fffff);
  }
  CHECK(denormal > STEPS * VOCAB / 2, "%d denormal logits", denormal);
  for (int l = 0; l < 2; ++l) {
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)
      for (int own = 0; own < 2; ++own)
        for (int threads = 1; threads <= 3; ++threads) {
          mode = modes[m];
          all_calls(own ? NULL : argv[1], threads, logits);
          CHECK(equal(expected[own], logits, STEPS), "other bits with MXCSR %#x, locale %d, own weights %d, threads %d", mode, l, own, threads);
        }
    if (l == 0) {
      char text[8];
      CHECK(setlocale(LC_ALL, argv[3]), "no locale %s", argv[3]);
      snprintf(text, sizeof text, "%.1f", 0.5);
      CHECK(!strcmp(text, "0,5"), "%s writes %s", argv[3], text);
    }
  }
  return 0;
}
