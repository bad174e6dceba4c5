/* Thalweg as a C library, for bindings. The same as thalweg.hpp, which says more.
 *
 * Ownership: what a caller passes is copied; what a callback receives is valid during the call only. An
 * engine is closed by whoever opened it. Threads: every function may be called from any thread, except
 * thalweg_close, which must come last. Callbacks come from the engine's own thread, one at a time; they must
 * not block, nor call thalweg_drain or thalweg_close. Errors: functions that can fail return NULL or 0 and
 * write one line to `error` (if it is not NULL), cut to `error_size` bytes with its final zero. */
#ifndef THALWEG_THALWEG_H
#define THALWEG_THALWEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thalweg_engine thalweg_engine;

/* Fill with thalweg_default_options, then change what matters. Strings may be NULL where empty is meant. */
typedef struct thalweg_options {
  const char* model;     /* folder of the checkpoint */
  size_t threads;        /* 0: all processors */
  int replay;            /* not 0: bounded replay, approximate */
  const char* speculate; /* NULL or "off", "fixed:K", "dynamic", "adaptive" */
  int32_t sequences;     /* answers in progress at once */
  int32_t batch_tokens;  /* rows of a step at most */
  int64_t context;       /* 0: what model and cache allow */
  int64_t cache_tokens;  /* 0: 65,536 */
  size_t host_cache_bytes;
  const char* disk_cache; /* NULL: none */
} thalweg_options;

/* Fill with thalweg_default_request. Either `prompt` (UTF-8) or `tokens`. */
typedef struct thalweg_request {
  const char* prompt;
  const int32_t* tokens;
  size_t token_count;
  int64_t max_tokens; /* 0: until the context is full */
  double temperature; /* 0: the most likely token */
  double top_p;
  int32_t top_k;
  int has_seed; /* 0: a random seed */
  uint64_t seed;
  const char* const* stop; /* texts that end the answer */
  size_t stop_count;
  int ignore_eos;
  int32_t n;
  int priority;
  const char* cache_salt;
} thalweg_request;

typedef enum thalweg_finish {
  THALWEG_UNFINISHED = 0,
  THALWEG_STOP = 1,
  THALWEG_LENGTH = 2,
  THALWEG_ABORTED = 3,
  THALWEG_FAILED = 4
} thalweg_finish;

typedef struct thalweg_event {
  uint64_t request;
  int32_t choice;
  int32_t token;    /* -1: none */
  const char* text; /* may be empty, never NULL; may hold zero bytes */
  size_t text_size;
  thalweg_finish finish; /* of every answer, the last event has one */
  const char* error;     /* empty unless THALWEG_FAILED */
  int64_t prompt_tokens;
  int64_t reused_tokens;
  int64_t output_tokens; /* with the last event */
} thalweg_event;

typedef void (*thalweg_callback)(const thalweg_event* event, void* user);

typedef struct thalweg_statistics {
  uint64_t admitted, waiting, running, finished, aborted;
  uint64_t prompt_tokens, reused_tokens, output_tokens, steps;
  double device_seconds;
} thalweg_statistics;

const char* thalweg_version(void);
thalweg_options thalweg_default_options(void);
thalweg_request thalweg_default_request(void);

/* Loads a model and starts its engine; NULL on failure. */
thalweg_engine* thalweg_open(const thalweg_options* options, char* error, size_t error_size);
/* Ends unfinished answers as aborted and frees everything. NULL is ignored. */
void thalweg_close(thalweg_engine* engine);

/* Takes a request; 0 on failure. `callback` is called with `user` until every answer has finished. */
uint64_t thalweg_submit(thalweg_engine* engine, const thalweg_request* request, thalweg_callback callback,
                        void* user, char* error, size_t error_size);
/* Ends a request; unknown and finished ids are ignored. */
void thalweg_cancel(thalweg_engine* engine, uint64_t request);
/* Returns when no request is unfinished. */
void thalweg_drain(thalweg_engine* engine);
void thalweg_get_statistics(const thalweg_engine* engine, thalweg_statistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
