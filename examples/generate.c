/* Continues a text: generate_c MODEL TEXT [TOKENS] */
#include <stdio.h>
#include <stdlib.h>

#include "thalweg/thalweg.h"

static void on_event(const thalweg_event* event, void* user) {
  fwrite(event->text, 1, event->text_size, stdout);
  fflush(stdout);
  if (event->finish == THALWEG_FAILED) {
    fprintf(stderr, "generate_c: %s\n", event->error);
    *(int*)user = 1;
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: generate_c MODEL TEXT [TOKENS]\n");
    return 2;
  }
  char error[512];
  thalweg_options options = thalweg_default_options();
  options.model = argv[1];
  thalweg_engine* engine = thalweg_open(&options, error, sizeof error);
  if (engine == NULL) {
    fprintf(stderr, "generate_c: %s\n", error);
    return 1;
  }
  thalweg_request request = thalweg_default_request();
  request.prompt = argv[2];
  request.max_tokens = argc > 3 ? atoll(argv[3]) : 32;
  request.temperature = 0;
  int failed = 0;
  if (thalweg_submit(engine, &request, on_event, &failed, error, sizeof error) == 0) {
    fprintf(stderr, "generate_c: %s\n", error);
    failed = 1;
  }
  thalweg_drain(engine);
  thalweg_close(engine);
  printf("\n");
  return failed;
}
