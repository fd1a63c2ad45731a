//===- Api.cpp - The functions of gptc.h ----------------------------------===//
//
// The names under which the compiler finds them; it renames gptc_core_X to
// NAME_X. Here the pointers are checked and the session is taken; the work is
// in the other files.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

using namespace gptc::core;

namespace {

/// Takes a session for the time of one call.
class Lease {
public:
  Lease(gptc_session *given, const char *function)
      : session(reinterpret_cast<Session *>(given)) {
    if (!session)
      status = fail(GPTC_INVALID_ARGUMENT, "%s: session is null", function);
    else if (session->kind != Kind::Session)
      status = fail(GPTC_INVALID_ARGUMENT, "%s: expected a session", function);
    else if (__atomic_exchange_n(&session->busy, 1, __ATOMIC_ACQUIRE))
      status = fail(GPTC_BUSY, "%s: the session is in use by another thread",
                    function);
  }
  ~Lease() {
    if (status == GPTC_OK)
      __atomic_store_n(&session->busy, 0, __ATOMIC_RELEASE);
  }
  Lease(const Lease &) = delete;

  Session *session;
  gptc_status status = GPTC_OK;
};

gptc_status isNull(const char *what) {
  return fail(GPTC_INVALID_ARGUMENT, "%s is null", what);
}

} // namespace

extern "C" {

const gptc_info *gptc_core_info(void) { return chosenProgram().info; }

gptc_status gptc_core_open(const gptc_open_params *params, gptc_model **model) {
  if (!params || !model)
    return isNull(params ? "open: model" : "open: params");
  *model = nullptr;
  return openModel(params, reinterpret_cast<Model **>(model));
}

gptc_status gptc_core_session(gptc_model *model, const gptc_limits *limits,
                              gptc_session **session) {
  if (!model || !session)
    return isNull(model ? "session: session" : "session: model");
  *session = nullptr;
  Model *opened = reinterpret_cast<Model *>(model);
  if (opened->kind != Kind::Model)
    return fail(GPTC_INVALID_ARGUMENT, "session: expected a model");
  return openSession(opened, limits, reinterpret_cast<Session **>(session));
}

gptc_status gptc_core_step(gptc_session *session, const gptc_batch *batch,
                           float *logits) {
  if (!batch)
    return isNull("step: batch");
  Lease lease(session, "step");
  return lease.status != GPTC_OK ? lease.status
                                 : step(*lease.session, *batch, logits);
}

gptc_status gptc_core_run(gptc_session *session, const char *entry,
                          const gptc_tensor *inputs, size_t input_count,
                          gptc_tensor *outputs, size_t output_count) {
  if (!entry)
    return isNull("run: entry");
  if ((input_count && !inputs) || (output_count && !outputs))
    return isNull(inputs ? "run: outputs" : "run: inputs");
  Lease lease(session, "run");
  return lease.status != GPTC_OK ? lease.status
                                 : runEntry(*lease.session, entry, inputs,
                                            input_count, outputs, output_count);
}

gptc_status gptc_core_fork(gptc_session *session, int32_t from, int32_t to,
                           int64_t length) {
  Lease lease(session, "fork");
  if (lease.status != GPTC_OK)
    return lease.status;
  if (!lease.session->step)
    return fail(GPTC_INVALID_ARGUMENT,
                "fork: package %.200s has no stepping entry",
                programOf(*lease.session->model).info->name);
  if (onDevice()) {
    OnDevice current(lease.session->model->device);
    awaitTables(*lease.session);
  }
  return forkSequence(lease.session->cache, from, to, length);
}

gptc_status gptc_core_observe(gptc_session *session, gptc_observer observer,
                              void *user) {
  Lease lease(session, "observe");
  if (lease.status != GPTC_OK)
    return lease.status;
  lease.session->observer = observer;
  lease.session->observerUser = user;
  return GPTC_OK;
}

void gptc_core_close(void *model_or_session) {
  if (!model_or_session)
    return;
  if (*static_cast<Kind *>(model_or_session) == Kind::Session)
    dropSession(static_cast<Session *>(model_or_session));
  else if (*static_cast<Kind *>(model_or_session) == Kind::Model)
    dropModel(static_cast<Model *>(model_or_session));
}

const char *gptc_core_last_error(void) { return lastError(); }

const gptc_api *gptc_core_api(void) {
  static const gptc_api table = {
      sizeof(gptc_api), gptc_core_info,      gptc_core_open, gptc_core_session,
      gptc_core_step,   gptc_core_run,       gptc_core_fork, gptc_core_observe,
      gptc_core_close,  gptc_core_last_error};
  return &table;
}

} // extern "C"
