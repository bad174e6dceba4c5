// The subcommands of `thalweg`. Each add_* declares one: its options and the callback that runs it. A
// callback throws thalweg::Error for whatever goes wrong; main turns that into a line on stderr and the exit
// code.
#pragma once

#include <CLI/CLI.hpp>

namespace thalweg::app {

/// Declares every command of the program on `app`.
void add_commands(CLI::App& app);

/// `plan`: what a model takes and what fits on given devices, from its configuration alone.
void add_plan(CLI::App& app);

/// `bench`: measurements (docs/engine.md, docs/kernels.md).
void add_bench(CLI::App& app);

/// `bench decode`, `bench prefix`: the engine.
void add_bench_decode(CLI::App& bench);
void add_bench_prefix(CLI::App& bench);
void add_bench_acceptance(CLI::App& bench);
void add_bench_grammar(CLI::App& bench);

/// `eval`: quality of a checkpoint, and what an approximation costs of it (docs/replay.md).
void add_eval(CLI::App& app);

/// `inspect checkpoint`: configuration and tensor table of a checkpoint, checked as loading checks it.
void add_inspect_checkpoint(CLI::App& inspect);

/// `inspect parse`: what a model's output means (docs/output_parsing.md).
void add_inspect_parse(CLI::App& inspect);

/// `generate` and `chat`: text in, text out.
void add_generate(CLI::App& app);
void add_chat(CLI::App& app);

/// `serve`: the HTTP service (docs/serving.md).
void add_serve(CLI::App& app);

/// `inspect logits`, `inspect greedy`, `inspect draft`: the model's arithmetic (docs/numerics.md).
void add_inspect_logits(CLI::App& inspect);
void add_inspect_greedy(CLI::App& inspect);
void add_inspect_draft(CLI::App& inspect);

/// `inspect tokens`: text to ids and back (docs/tokenizer.md).
void add_inspect_tokens(CLI::App& inspect);

/// `inspect render`: what a request becomes before the engine sees it (docs/chat_encoding.md).
void add_inspect_render(CLI::App& inspect);

/// `inspect schema`: JSON texts against a JSON Schema (docs/structured_outputs.md).
void add_inspect_schema(CLI::App& inspect);

/// `inspect flops`: arithmetic of steps. `inspect verify-plan`: the confidence schedule.
void add_inspect_flops(CLI::App& inspect);
void add_inspect_verify_plan(CLI::App& inspect);

}  // namespace thalweg::app
